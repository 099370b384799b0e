from herring_reducer import main

main()

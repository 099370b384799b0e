# herring: pages of the public names of include/ for the site, one a folder, from the XML that Doxygen makes of the headers.
# SPDX-License-Identifier: Apache-2.0
#
# A name is public when it has a block of `///` and lies in no namespace `detail`. A class is shown with what it inherits.
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

INSIDE = {"crypto", "engine", "gpu", "kernel", "machine", "net", "session", "step"}  # folders that programs do not include
STYLE = "--style={BasedOnStyle: LLVM, IndentWidth: 4, ColumnLimit: 78, PointerAlignment: Left, PenaltyBreakComment: 1}"
CLASSES = ("class", "struct", "union")


def plain(element, path):
    return " ".join(" ".join("".join(inner.itertext()) for inner in element.findall(path)).split())


def name(one):
    return plain(one, "name") or re.search(r"[^:<> ]+(<.*>)?$", plain(one, "compoundname"))[0]


def heading(title):
    return title.replace("< ", "&lt;").replace(" >", ">")


def place(one):
    location = one.find("location")
    return location.get("file"), int(location.get("line")), int(location.get("column"))


def markdown(element):
    """A text of Doxygen's; labels and what they introduce are a definition list."""
    escaped = lambda text: re.sub(r"([\\`*_\[])", r"\\\1", text or "").replace("<", "&lt;")
    whole, text = "".join(element.itertext()), escaped(element.text) + "".join(markdown(inner) + escaped(inner.tail) for inner in element)
    if element.tag in ("programlisting", "verbatim"):
        for space in element.iter("sp"):
            space.text = " "
        whole = "".join(element.itertext())
        return f"\n\n```c++\n{whole.rstrip()}\n```\n\n"
    if element.tag == "simplesect":
        text = markdown(element[1]).strip()
        return f"\n\n{element[0].text}\n:   {text}\n\n" if text else f"**{element[0].text}**\n\n"
    forms = {"computeroutput": f"`{whole}`", "para": text.strip() + "\n\n", "listitem": "- " + text.strip().replace("\n", "\n    ") + "\n"}
    return forms.get(element.tag, text)


def block(one):
    return "".join(markdown(one.find(part)) for part in ("briefdescription", "detaileddescription")).strip()


def is_behind(one):
    """True if the text of a value stands behind it: it is no sentence."""
    return one.tag == "enumvalue" or one.get("kind") == "variable" and not plain(one, ".//para")[:1].isupper()


def members(one, compounds):
    """What is public in a class, an enumeration or a namespace, in order; behind it what is documented in bases in `detail`."""
    inner = [compounds[x.get("refid")] for x in one.findall("innerclass[@prot='public']") if x.get("refid") in compounds]
    own = [x for x in one.findall("sectiondef/memberdef[@prot='public']") if x.get("kind") != "friend" or block(x)]
    bases = {x.text.split("<")[0] for x in one.findall("basecompoundref[@prot='public']") if "detail::" in x.text}
    return one.findall("enumvalue") + sorted(own + inner, key=place) + [x for base in compounds.values() if base.findtext("compoundname").split("<")[0] in bases for x in members(base, compounds) if block(x)]


def code(one, compounds, end=";"):
    """A declaration, with those of its members."""
    kind, head, requires = one.get("kind"), "", plain(one, "requiresclause")
    if kind == "concept":
        return re.sub(r"\bconcept herring::[\w:]*\b(?=\w+ =)", "concept ", plain(one, "initializer")) + ";"
    if one.find("templateparamlist") is not None:
        parameters = (" ".join(filter(None, (plain(x, "type"), plain(x, "declname"), x.find("defval") is not None and f"= {plain(x, 'defval')}"))) for x in one.findall("templateparamlist/param"))
        head, requires = f"template <{', '.join(parameters)}>{' requires ' * bool(requires)}{requires} ", ""
    if kind in (*CLASSES, "enum"):
        bases = ", ".join("public " * (kind == "class") + plain(x, ".") for x in one.findall("basecompoundref[@prot='public']")) or plain(one, "type")
        inner = (code(x, compounds, "," if kind == "enum" else ";") + f" // {plain(x, './/para')}" * (is_behind(x) and block(x) != "") for x in members(one, compounds))
        return "\n".join((f"{head}{kind}{' class' * (one.get('strong') == 'yes')} {name(one)}{' : ' * bool(bases)}{bases} {{", *inner, "};"))
    if kind == "typedef":
        return f"{head}using {name(one)} = {plain(one, 'type')}{plain(one, 'argsstring')};"
    head += "static " * (one.get("static") == "yes") + "explicit " * (one.get("explicit") == "yes") + plain(one, "type")
    text = f"{head} {name(one)}{plain(one, 'argsstring')}{' requires ' * bool(requires)}{requires} {plain(one, 'initializer')}"
    return text + (" {}" if kind in ("function", "friend") and "=" not in text[-10:] else end)  # `formatted` ends it


def shown(one, compounds):
    yield f"```cpp\n{code(one, compounds)}\n```\n\n{block(one)}\n"
    for member in members(one, compounds):
        if block(member) and not is_behind(member):
            yield f"#### {heading(name(member))}\n"
            yield from shown(member, compounds)


def formatted(text, clang_format):
    """The text, with its C++ as clang-format leaves it."""
    fence = re.compile(r"^```cpp\n(.*?)\n```$", re.M | re.S)
    done = subprocess.run([clang_format, STYLE], input="\n#next\n".join(fence.findall(text)), stdout=subprocess.PIPE, check=True, text=True)
    codes = iter(re.split(r"\n+#next\n", re.sub(r"\s*\{\}$", ";", done.stdout, flags=re.M).strip()))
    return fence.sub(lambda _: f"```cpp\n{next(codes)}\n```", text)


def pages(include, site, clang_format):
    """{folder: text of its page} of the headers below include/herring."""
    subprocess.run(["doxygen", "docs/site/Doxyfile"], cwd=include.parent, check=True)
    stray = re.compile(r"^[ \t]*///(?!<)[^\n]*\n(?=[ \t]*(?:\n|\}|static_assert|(?:public|protected|private):))", re.M)
    if wrong := [f"{header}: documents nothing: {found[0].strip()}" for header in include.glob("herring/**/*.[hc][pu][ph]") for found in stray.finditer(header.read_text())]:
        sys.exit("\n".join(wrong))
    compounds = {x.get("id"): x for path in (site / "xml").glob("*herring*.xml") for x in ET.parse(path).getroot()}
    nested = {x.get("refid") for one in compounds.values() if one.get("kind") in CLASSES for x in one.findall("innerclass")}
    scopes = [(plain(one, "compoundname") + "::", members(one, {})) for one in compounds.values() if one.get("kind") == "namespace"]
    scopes += [(plain(one, "compoundname").removesuffix(name(one)), [one]) for key, one in compounds.items() if one.get("kind") in (*CLASSES, "concept") and key not in nested]
    names = [(*place(x), scope + name(x), x) for scope, some in scopes for x in some if block(x) and "detail::" not in scope]
    result, before = {}, {}
    for header, _, _, title, one in sorted(names, key=lambda x: x[:3]):
        folder = header.split("/")[1] if header.count("/") > 1 else "herring"
        if folder in INSIDE:
            continue
        page = result.setdefault(folder, [f"# {'Reducers, ensembles' if folder == 'herring' else folder.replace('_', ' ').capitalize()}\n"])
        if header not in before:
            page.append(f"## {header}\n\n{re.match('// herring: (.*)', (include / header).read_text())[1]}\n")
        page += [f"### {heading(title.removeprefix('herring::'))}\n"] if before.get(header) != title else []
        page += shown(one, compounds)
        before[header] = title
    return dict(zip(result, formatted("\f".join("\n".join(page) for page in result.values()), clang_format).split("\f")))

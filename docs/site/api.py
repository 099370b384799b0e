# herring: pages of the public names of include/ for the site, one a folder, from the blocks of `///` in the headers.
# SPDX-License-Identifier: Apache-2.0
#
# A name is public when it has a block of `///` and lies in no namespace `detail` or `clauses`. What a public class has from a base in
# `detail` is public too, and shown with the class. Headers look as clang-format leaves them, so a scan for brackets finds
# declarations; a block that stands before none is an error.
import re

INSIDE = {"crypto", "engine", "gpu", "kernel", "machine", "net", "session", "step", "torch"}  # folders that programs do not include
ENTITY = re.compile(r"\s*(struct|class|union|enum(?: class)?)\s+(?:alignas\([^)]*\)\s*|\[\[.*?\]\]\s*)?(\w+)\b")
LABEL = re.compile(r"(Shape|Units|Cost|Collective|Blocks|Threads|Stream|Memory|Lifetime|Errors|Source|Result|Order|Bits|Reads|Returns|Bounds|Layout|Facts|Clause|Traps|Example):\s+(.*)")
REQUIRES = re.compile(r"(?:[=&|(]|\brequires)\s*requires\s*(\([^{}]*\))?\s*$")


def masked(text):
    """The text with comments, literals and lines of the preprocessor blanked, character by character."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def closing(mask, at):
    """Where the bracket that opens at `at` closes."""
    opens, depth = mask[at], 0
    closes = {"<": ">", "(": ")"}[opens]
    for at in range(at, len(mask)):
        depth += (mask[at] == opens) - (mask[at] == closes and mask[at - 1] != "-")
        if depth == 0:
            return at + 1
    return at


def behind_template(mask):
    """Where a declaration goes on behind `template <...>` and a `requires(...)`."""
    at, mask = 0, mask.replace("<<", "  ")
    while found := re.compile(r"\s*(?:template\s*(?=<)|requires\s*(?=\())").match(mask, at):
        at = closing(mask, found.end())
    return at


class Declaration:
    def __init__(self, scope, block, public, text, mask, body):
        self.scope, self.block, self.public, self.members, self.bases = scope, block, public, [], []
        head = mask[: body[0] - 1] if body else mask
        skip = behind_template(head)
        found = ENTITY.match(head, skip) if body else None
        if found and not found[1].startswith("enum"):
            introduced, _, inherits = head.partition(" : ")
            self.name, self.text = found[2], text[: len(introduced)].rstrip()
            inherits = re.split(r",(?![^<]*>)", inherits)
            self.bases = [re.match(r"\s*(?:public\s+)?detail::(\w+)", base)[1] for base in inherits if re.match(r"\s*(?:public\s+)?detail::", base)]
            self.members = list(declarations(f"{scope}::{self.name}", text, mask, *body, found[1] == "struct"))
            return
        if found:
            self.name, self.text = found[2], text
            return
        call = re.search(r"(operator\s*\(\)|operator[^(]*|~?\w+)\s*\(", re.sub(r"\b(explicit|noexcept|requires|__launch_bounds__|decltype)\s*\(", lambda m: " " * len(m[0]), head[skip:]))
        name = re.search(r"\b(?:concept|using)\s+(\w+)\s*=|\(\*(?=(\w+)\)\()", head) or (call if call and "=" not in head[skip : skip + call.start()] else None) or re.search(r"(\w+)\s*(?:<[^=]*>\s*)?(?:\[[^\]]*\]\s*)?(?:=|;|\{|:(?!:))", head[skip:])
        self.name = re.sub(r"\s+", " ", name[name.lastindex]).strip() if name else text
        start = re.search(r"\)(?:\s*noexcept)?\s*(?<!:):(?!:)", head) if body else None  # initialisers of a constructor
        self.text = (text[: start.end() - 1] if start else text[: len(head)]).rstrip().rstrip(";").rstrip() + ";"


def declarations(scope, text, mask, at, end, public=True):
    """The declarations of a scope, in order; namespaces are entered."""
    while at < end:
        if mask[at].isspace() or mask[at] in ";}":
            at += 1
        elif label := re.compile(r"(public|protected|private)\s*:(?!:)").match(mask, at, end):
            public, at = label[1] == "public", label.end()
        else:
            depth, body, stop = 0, None, at
            is_named = lambda words: re.match(words, mask[at : at + 300])
            for stop in range(at, end):
                if mask[stop] == "{" and depth == 0:
                    body = stop
                depth += (mask[stop] in "({[") - (mask[stop] in ")}]")
                if depth == 0 and mask[stop] == ";":
                    break
                if depth == 0 and mask[stop] == "}":
                    follows, entity = mask[stop + 1 : end].lstrip()[:1], ENTITY.match(mask[at:body], behind_template(mask[at:body]))
                    if not is_named(r"(inline )?namespace\b") and (REQUIRES.search(mask[at:body]) or follows in ("{", ",", ";", "<", ">")):
                        body = body if entity else None  # an expression or an initialiser; `};` ends a class
                    else:
                        break
            above = re.search(r"((?:^[ \t]*///(?!<)[^\n]*\n)*)(?:^[ \t]*(?://(?!/)[^\n]*|#[^\n]*)?\n)*[ \t]*\Z", text[:at], re.M)[1]
            block = [re.sub(r"^\s*/// ?", "", line) for line in above.splitlines()]
            if space := is_named(r"(?:inline )?namespace\s*([\w: ]*)\{"):
                name = space[1].replace("HERRING_NAMESPACE", "herring").replace("inline ", "").strip()
                yield from declarations(f"{scope}::{name}".strip(":"), text, mask, at + space.end(), stop)
            elif not is_named(r"(static_assert|friend)\b"):
                behind = re.compile(r"[ \t]*(//[^\n]*)").match(text, stop + 1)
                one = Declaration(scope, block, public, text[at : stop + 1], mask[at : stop + 1], (body - at + 1, stop - at) if body else None)
                one.behind = "  " + re.sub(r"^///?<?", "//", behind[1]) if behind else ""
                yield one
            at = stop + 1


def in_markdown(block):
    """A block: what is labelled becomes a list; an example and what is indented by four, code; the rest are paragraphs."""
    text, example = [], False
    for at, line in enumerate(block):
        label = LABEL.match(line)
        code = line.startswith("    ") and (at == 0 or not block[at - 1] or block[at - 1].endswith(":") or text[-1:] == [block[at - 1]])  # or goes on
        example = label[1] == "Example" and not label[2].startswith("`") if label else example and line.startswith("  ")
        if example:
            text += (["", "**Example**", ""] if label else []) + ["    " + (label[2] if label else line[10:])]
        elif code:
            text += ([""] if text and text[-1] and text[-1] != block[at - 1] else []) + [line]
        elif label:
            text += ([] if at == 0 or not text[-1] or LABEL.match(block[at - 1]) or block[at - 1].startswith(" ") else [""]) + [f"- **{label[1]}:** {label[2]}"]
        else:
            text.append(("  " if line.startswith("  ") else "") + line.strip())
    parts = re.split(r"(^    [^\n]*$|`[^`]*`|\*\*\w+(?:, \w+)*:?\*\*)", "\n".join(text), flags=re.M)
    return "".join(part if i % 2 else re.sub(r"([\[*_])", r"\\\1", part).replace("<", "&lt;") for i, part in enumerate(parts))


def dedented(text):
    return re.sub(r"^ {4}", "", text, flags=re.M) if re.search(r"\n    ", text) and not re.search(r"\n {0,3}\S", text) else text


def shown(one, classes):
    """A declaration: its code, then its block, then the blocks of its members."""
    members = [m for m in one.members if m.public] + [m for base in one.bases for m in all_members(base, classes)]
    code = one.text
    if one.members or one.bases:
        code += " {\n" + "".join("    " + re.sub(r"^ +(?=\S)", lambda s: s[0][4:] if len(s[0]) > 8 else "        ", m.text, flags=re.M) + (";" if m.members or m.bases else "") + m.behind + "\n" for m in members) + "};"
    elif not code.endswith(";"):
        code += ";"
    yield f"```cpp\n{code}\n```\n\n{in_markdown(one.block)}\n"
    for member in members:
        if member.block:
            yield f"#### {member.name.replace('<', '&lt;')}\n\n```cpp\n{dedented(member.text)}{';' if member.members else ''}\n```\n\n{in_markdown(member.block)}\n"


def all_members(base, classes):
    for one in classes.get(base, []):
        yield from (m for m in one.members if m.public and m.block)
        for further in one.bases:
            yield from all_members(further, classes)


def pages(include):
    """{folder: text of its page} of the headers below include/herring."""
    found, classes, wrong = {}, {}, []
    for header in sorted(include.glob("herring/**/*.[hc][pu][ph]")):
        if header.stem.endswith("_impl"):
            continue
        text = header.read_text()
        mask = masked(text)
        found[header] = list(declarations("", text, mask, 0, len(mask)))
        every = lambda some: [x for one in some for x in (one, *every(one.members))]
        for one in every(found[header]):
            if one.bases or one.members:
                classes.setdefault(one.name, []).append(one)
        blocks = len(re.findall(r"^[ \t]*///(?!<)[^\n]*\n(?![ \t]*(?:///(?!<)|#|(?:inline )?namespace\b|\w+,?\n))", text, re.M))
        attached = sum(bool(one.block) for one in every(found[header]))
        if blocks > attached:
            wrong.append(f"{header}: {blocks} blocks of ///, {attached} declarations that have one")
    result = {}
    for header, some in found.items():
        name = header.relative_to(include)
        folder = name.parts[1] if len(name.parts) > 2 else "herring"
        public = [one for one in some if one.block and one.public and not re.search(r"\b(detail|clauses)\b", one.scope)]
        if folder in INSIDE or not public:
            continue
        about = re.match(r"// herring: (.*)", header.read_text())[1]
        page = result.setdefault(folder, [f"# {'Reducers, ensembles' if folder == 'herring' else folder.replace('_', ' ').capitalize()}\n"])
        page.append(f"## {name}\n\n{about}\n")
        before = None
        for one in public:
            title = f"{one.scope}::{one.name}".removeprefix("herring::")
            page += [f"### {title}\n"] if title != before else []
            page += shown(one, classes)
            before = title
    return {folder: "\n".join(page) for folder, page in result.items()}, wrong

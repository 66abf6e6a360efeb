"""Reading C source without compiling it: shared by check-layers and check-size."""

import os
import re

TOKEN = re.compile(
    r"""//[^\n]*                      # line comment
      | /\*.*?(?:\*/|\Z)              # block comment
      | "(?:\\.|[^"\\\n])*"           # string
      | '(?:\\.|[^'\\\n])*'           # character
    """,
    re.DOTALL | re.VERBOSE,
)


def blank(text):
    """The same number of lines and columns, nothing on them."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """Comments become spaces; strings stay."""
    return TOKEN.sub(lambda m: blank(m.group()) if m.group().startswith("/") else m.group(), text)


def without_comments_and_strings(text):
    """Comments and the contents of strings and characters become spaces; the quotes stay."""

    def replace(match):
        token = match.group()
        if token.startswith("/"):
            return blank(token)
        return token[0] + blank(token[1:-1]) + token[-1]

    return TOKEN.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def sources(folder, extensions=(".c", ".h")):
    """Every source file below a folder, in a stable order."""
    found = []
    for path, folders, files in os.walk(folder):
        folders.sort()
        found += [os.path.join(path, name) for name in sorted(files) if name.endswith(extensions)]
    return found


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write_tree(root, files):
    """For self-tests: writes {relative path: text}."""
    for name, text in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def self_test(check, cases):
    """
    Runs check(root), which answers a list of (path, line, rule, detail), on one
    small tree a case. A case is (name, files, expected), where expected is a list
    of (path, line, rule). Prints what differs; answers the exit status.
    """
    import tempfile

    failed = 0
    for name, files, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, files)
            found = sorted((path, line, rule) for path, line, rule, _ in check(root))
        if found != sorted(expected):
            failed += 1
            print("self-test: %s\n  expected %s\n  found    %s" % (name, sorted(expected), found))
    print("self-test: %d cases, %d failed" % (len(cases), failed))
    return 1 if failed else 0


def report(problems):
    """Prints the problems; answers the exit status."""
    for path, line, rule, detail in problems:
        print("%s:%d: %s: %s" % (path, line, rule, detail))
    return 1 if problems else 0

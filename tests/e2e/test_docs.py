"""The pages that are made from the program, or show it, agree with it."""
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SALLYPORT = os.environ["SALLYPORT"]


def page(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Docs(unittest.TestCase):
    def test_configuration_page_is_current(self):
        made = subprocess.run([SALLYPORT, "keywords", "--markdown"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(made == page("docs", "configuration.md"), "docs/configuration.md is stale: run make docs")

    def test_plain_tables(self):
        made = subprocess.run([SALLYPORT, "keywords"], capture_output=True, text=True, check=True).stdout
        for word in ("timeout client", "fetch: ssl_fc", "converter: lower", "action: set-header", "alias: sslv"):
            self.assertTrue(word in made, word)

    def test_links_lead_somewhere(self):
        for name in ["README.md", *(os.path.join("docs", n) for n in os.listdir(os.path.join(ROOT, "docs")))]:
            if not name.endswith(".md"):
                continue
            for target in re.findall(r"\]\(([^)#:]+)\)", page(name)):
                path = os.path.join(ROOT, os.path.dirname(name), target)
                self.assertTrue(os.path.exists(path), f"{name} links to {target}")

    def test_architecture_names_functions_that_exist(self):
        source = "".join(page("src", "proxy", n) for n in os.listdir(os.path.join(ROOT, "src", "proxy"))
                         if n.endswith(".c"))
        for label in re.findall(r"-->[^:\n]*: ([^\n]+)", page("docs", "architecture.md")):
            for function in re.findall(r"\b[a-z]+_[a-z_]+\b", label):
                self.assertRegex(source, r"\b%s\(" % function, "the state diagram names " + function)


if __name__ == "__main__":
    unittest.main()

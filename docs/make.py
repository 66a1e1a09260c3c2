"""Make what the pages contain: outputs of their code, their pictures, the table of estimators, and llms.txt.

python docs/make.py               everything but the picture of the report
python docs/make.py PAGE ...      outputs and pictures of these pages, such as docs/guides/first.md
python docs/make.py report        the picture of the report in the README (needs chromium)
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
DOCS = Path(__file__).parent
ROOT = DOCS.parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PICTURES = (".svg", ".png")
SPECIAL = {DOCS / "tutorial.md", DOCS / "howto" / "mistakes.md"}  # their tests have files and commands
TABLE = re.compile(r"(?<=<!-- catalogue -->\n).*?(?=<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return all pages with code, the README first."""
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in found if page not in SPECIAL and ">>> " in page.read_text()]


def run(page: Path) -> None:
    """Run the code of a page, correct its outputs and copy the pictures that it writes."""
    text = page.read_text()
    if re.search(r"^(?:>>>|\.\.\.).*\n```$", text, re.MULTILINE):
        raise ValueError(f"{page}: code needs an empty line before its closing fence, which would else be an output.")
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, page.name, str(page), 0)
    changes: list[tuple[int, str, str]] = []

    class Corrector(doctest.DocTestRunner):
        def report_failure(self, out, test, example, got):
            changes.append((example.lineno, example.want, got))

        def report_unexpected_exception(self, out, test, example, exc_info):
            raise RuntimeError(f"{page}, line {example.lineno + 1}: {example.source}") from exc_info[1]

    with tempfile.TemporaryDirectory() as folder:
        for file in page.parent.glob("*.toml"):
            shutil.copy(file, folder)
        before = Path.cwd()
        os.chdir(folder)
        try:
            Corrector(optionflags=FLAGS, verbose=False).run(test, clear_globs=False)
        finally:
            os.chdir(before)
        for file in sorted(Path(folder).iterdir()):
            if file.suffix in PICTURES:
                shutil.copy(file, page.parent)
                print(f"{page.relative_to(ROOT)}: {file.name}, {file.stat().st_size // 1000} kB")
    lines = text.splitlines(keepends=True)
    for example in reversed(test.examples):
        for start, want, got in changes:
            if start == example.lineno:
                first = start + example.source.count("\n")
                lines[first : first + want.count("\n")] = [
                    line if line.strip() else "<BLANKLINE>\n" for line in got.splitlines(True)
                ]
    if changes:
        page.write_text("".join(lines))
        print(f"{page.relative_to(ROOT)}: {len(changes)} outputs corrected")


def estimators() -> str:
    """Return the table of estimators, made from the catalogue."""
    from afape.estimators.catalogue import METHODS, ranked

    first = ranked()[0].name
    lines = ["| name | used by | what it does | right under |", "| --- | --- | --- | --- |"]
    for method in METHODS.values():
        practice = f"{method.practice}, **recommended**" if method.name == first else method.practice
        lines.append(f"| `{method.name}` | {practice} | {method.does} | {method.right_under} |")
    return "\n".join(lines) + "\n"


def with_estimators(text: str) -> str:
    """Return the page of estimators with the table of the catalogue."""
    return TABLE.sub(lambda found: estimators(), text)


def llms() -> str:
    """Return llms.txt: every page with its title and its first sentence, by section, in the order of the index."""
    index = (DOCS / "index.md").read_text()
    out = [
        "# afape",
        "",
        "> What would this active-feature-acquisition agent cost if we deployed it? afape answers from",
    ]
    out += ["> retrospective records in which many features were never measured.", ""]
    for caption, names in re.findall(r":caption: (.*?)\n\n(.*?)\n```", index, re.DOTALL):
        out += [f"## {caption}", ""]
        for name in names.split():
            text = (DOCS / f"{name}.md").read_text()
            title = re.search(r"^# (.*)", text, re.MULTILINE).group(1)
            out.append(f"- [{title}]({name}.html): {first_sentence(text)}")
        out.append("")
    return "\n".join(out)


def first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph of a page, without links and pictures."""
    body = re.split(r"\n\n", re.sub(r"^---.*?---\n", "", text, flags=re.DOTALL).strip())
    paragraph = next(p for p in body[1:] if re.match(r"[A-Z`-]", p))
    plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", " ".join(paragraph.split())).replace("**", "").removeprefix("- ")
    return re.match(r".*?[.?](?= |$)|.*", plain).group()


def report() -> None:
    """Make the picture of a report's top."""
    import afape
    from afape.datasets import make_ward

    problem = afape.Problem(
        groups={"age": ["age"], "cbc": ["cbc"], "lactate": ["lactate"]},
        costs={"cbc": 26.0, "lactate": 12.0},
        label="died",
        misclassification_cost=500.0,
    )
    train, test = afape.Retrospective(make_ward(4000), problem).split([0.4, 0.6], random_state=0)
    classifier = afape.ImputedClassifier().fit(train)
    doubtful = afape.agents.Guideline("if age > -1.5 and age < 1.5: lactate")
    policies = {"nothing": afape.AcquireNone(), "lactate if in doubt": doubtful, "everything": afape.AcquireAll()}
    found = afape.compare(test, policies, classifier, missingness=afape.MAR(given=["age"]))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        found.to_html(page)
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or "google-chrome"
        target = DOCS / "images" / "report.png"
        command = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,760"]
        subprocess.run([*command, f"--screenshot={target}", page.as_uri()], check=True, capture_output=True)


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    if arguments == ["report"]:
        report()
        return
    for page in [Path(name).resolve() for name in arguments] or pages():
        run(page)
    page = DOCS / "estimators.md"
    page.write_text(with_estimators(page.read_text()))
    (DOCS / "llms.txt").write_text(llms())


if __name__ == "__main__":
    main(sys.argv[1:])

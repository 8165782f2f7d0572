"""The GitHub workflows: what they run exists, with no more rights than it needs; and what a release needs agrees."""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".github" / "workflows"
#: Rights beyond reading the repository, by workflow and job.
RIGHTS = {("pages", "deploy"): {"pages": "write", "id-token": "write"}}


def read(name: str) -> dict:
    """A workflow; YAML 1.1 reads its key ``on`` as true."""
    content = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in content.items()}


def targets() -> set[str]:
    """The Makefile's."""
    return set(re.findall(r"^([\w./-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def problems(name: str, workflow: dict) -> Iterator[str]:
    """What is wrong with a workflow, one line each."""
    if workflow.get("permissions") != {"contents": "read"}:
        yield "the workflow must be given to read the repository, and no more"
    if "group" not in workflow.get("concurrency", {}):
        yield "it has no concurrency group"
    for job_name, job in workflow["jobs"].items():
        if job.get("permissions", {}) != RIGHTS.get((name, job_name), {}):
            yield f"{job_name} has other rights than {RIGHTS.get((name, job_name), 'those of the workflow')}"
        if job.get("needs", job_name) not in workflow["jobs"]:
            yield f"{job_name} needs a job that there is not"
        if "uses" in job:
            if not job["uses"].startswith("./") or not (ROOT / job["uses"]).is_file():
                yield f"{job_name} uses {job['uses']}, which is no workflow of this repository"
            continue
        if not 0 < job.get("timeout-minutes", 0) <= 60:
            yield f"{job_name} may run for hours: give it timeout-minutes"
        for step in job["steps"]:
            if "uses" in step and not re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]):
                yield f"{job_name} uses {step['uses']}: an action of GitHub's own, at a major version"
            checks_out = step.get("uses", "").startswith("actions/checkout@")
            if checks_out and step.get("with", {}).get("persist-credentials") is not False:
                yield f"{job_name} leaves its credentials in the checkout"
            yield from (f"{job_name} runs {line!r}: {why}" for line, why in _commands(step.get("run", "")))


def _commands(script: str) -> Iterator[tuple[str, str]]:
    for line in script.splitlines():
        word, *rest = line.split()
        if word == "make":
            if missing := [target for target in rest if target not in targets()]:
                yield line, f"the Makefile has no {', '.join(missing)}"
        elif not (ROOT / word).is_file() or not os.access(ROOT / word, os.X_OK):
            yield line, "neither make nor a script of the repository"


@pytest.mark.parametrize("name", ["ci", "pages"])
def test_a_workflow_runs_what_there_is_with_no_more_rights_than_it_needs(name: str):
    assert list(problems(name, read(name))) == []


def test_there_are_no_other_workflows():
    assert {path.name for path in FOLDER.iterdir()} == {"ci.yml", "pages.yml"}


def _step(workflow: dict, job: str, **changes: object) -> None:
    workflow["jobs"][job]["steps"].append(changes)


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (lambda w: w.update(permissions={"contents": "write"}), "and no more"),
        (lambda w: w.pop("permissions"), "and no more"),
        (lambda w: w.pop("concurrency"), "no concurrency group"),
        (lambda w: w["jobs"]["build"].update(permissions={"contents": "write"}), "build has other rights"),
        (lambda w: w["jobs"]["deploy"].pop("permissions"), "deploy has other rights"),
        (lambda w: w["jobs"]["build"].update(needs="test"), "build needs a job that there is not"),
        (lambda w: w["jobs"]["build"].pop("timeout-minutes"), "build may run for hours"),
        (lambda w: w["jobs"]["tests"].update(uses="./.github/workflows/tests.yml"), "no workflow of this repository"),
        (lambda w: _step(w, "build", uses="actions/setup-python@main"), "at a major version"),
        (lambda w: _step(w, "build", uses="somebody/deploys@v1"), "of GitHub's own"),
        (lambda w: _step(w, "build", uses="actions/checkout@v6"), "leaves its credentials"),
        (lambda w: _step(w, "build", run="make books"), "the Makefile has no books"),
        (lambda w: _step(w, "build", run="make book\n.ci/running"), "neither make nor a script"),
        (lambda w: _step(w, "build", run="Makefile"), "neither make nor a script"),
    ],
)
def test_a_fault_is_found(plant: Callable[[dict], object], said: str):
    workflow = copy.deepcopy(read("pages"))
    plant(workflow)
    found = list(problems("pages", workflow))
    assert len(found) == 1
    assert said in found[0]


def test_ci_runs_one_script_on_pull_requests_on_the_oldest_python_and_a_newer_one():
    workflow = read("ci")
    assert {"pull_request", "push", "workflow_call"} == set(workflow["on"])
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest, *newer = job["strategy"]["matrix"]["python"]
    assert project["requires-python"] == f">={oldest}"
    assert newer
    cached = [step["with"]["cache-dependency-path"] for step in job["steps"] if "cache" in step.get("with", {})]
    assert all((ROOT / line).is_file() for lines in cached for line in lines.splitlines())


def test_a_tag_publishes_what_make_book_leaves_and_only_after_the_tests():
    workflow = read("pages")
    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    assert workflow["concurrency"] == {"group": "pages", "cancel-in-progress": False}
    jobs = workflow["jobs"]
    assert [job.get("needs") for job in jobs.values()] == [None, "tests", "build"]
    assert jobs["tests"] == {"uses": "./.github/workflows/ci.yml"}
    (upload,) = (step for step in jobs["build"]["steps"] if "upload-pages-artifact" in step.get("uses", ""))
    # What book.build leaves, and what make clean removes
    assert upload["with"]["path"] == "_build/html"
    assert jobs["deploy"]["environment"]["name"] == "github-pages"
    assert not any("run" in step or "checkout" in step["uses"] for step in jobs["deploy"]["steps"])


def test_the_version_is_the_same_wherever_it_stands():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"]
    if os.environ.get("GITHUB_REF_TYPE") == "tag":  # of a release
        assert os.environ["GITHUB_REF_NAME"] == f"v{project['version']}", "raise the version before you tag it"

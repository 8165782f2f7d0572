# Thin over `python -m howattend`; every command works without make too (see the README).
PYTHON ?= python3
RUN := .venv/bin/python -m howattend
RECENT := import sys; sys.exit(sys.version_info < (3, 11))

.PHONY: book test chapters train corpus sweep bench lint clean

book: .venv/.ready  ## execute every chapter, build the pages, say where they are
	@$(RUN) book

test: .venv/.ready  ## lint, every test, and a new run of every chapter
	@$(RUN) test

chapters: .venv/.ready  ## refresh the committed notebooks
	@$(RUN) chapters

train: .venv/.ready  ## train what has no weights of its present configuration
	@$(RUN) train --all

corpus: .venv/.ready  ## build the corpus of the translation task, once (fetches 187 MB)
	@$(RUN) corpus

sweep: .venv/.ready  ## every configuration at several seeds, every claim on each: hours; goes on where it was stopped
	@$(RUN) sweep

bench: .venv/.ready  ## speed, as ratios to what the machine can do
	@$(RUN) bench

lint: .venv/.ready
	@.venv/bin/python -m ruff check .
	@.venv/bin/python -m ruff format --check .

clean:  ## remove what was built; .venv stays
	rm -rf _build .pytest_cache .ruff_cache .hypothesis

# .incomplete marks a set-up that was begun and not ended: it starts again in an empty folder. An environment that works
# is kept, and only brought to the pinned versions.
.venv/.ready: requirements.txt constraints.txt pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "howattend needs Python 3.11 or newer, and there is no $(PYTHON): install it, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c '$(RECENT)' || { echo "howattend needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" --version 2>&1): name a newer one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@if [ -e .venv/.incomplete ] || ! .venv/bin/python -c 'import pip; $(RECENT)' 2>/dev/null; then \
		echo "setting up .venv, once (a few minutes and 2 GB; more with torch for GPUs)" && \
		rm -rf .venv && mkdir .venv && touch .venv/.incomplete && "$(PYTHON)" -m venv .venv; \
	fi
	@touch .venv/.incomplete
	@.venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt
	@touch .venv/.ready && rm .venv/.incomplete

# The list of commands. Logic longer than five lines is in tools/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: build wheel sdist smoke clean

# The environment for development: the package is installed in place, so Python
# files count as they are; the extension is compiled again when its inputs change.
build: $(VENV)/installed
	$(BIN)/python setup.py --quiet build_ext --inplace

$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

wheel: build
	rm -rf dist/*.whl build/lib* build/bdist* # setuptools would pack files long deleted
	$(BIN)/python -m build --wheel --no-isolation

sdist: build
	rm -f dist/*.tar.gz
	$(BIN)/python -m build --sdist --no-isolation

# One wheel, every CPython found (tools/smoke.py names those that are not).
smoke: wheel
	$(BIN)/python tools/smoke.py dist/*.whl

clean:
	rm -rf build dist $(VENV) python/*.egg-info python/halstream/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

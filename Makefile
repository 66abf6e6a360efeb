# A thin front: the build is Meson's (meson.build), the work is in tools/.
#
#   make            build build/sallyport
#   make run        build and run the demonstration; Ctrl-C stops it
#   make test       every check and test; SUITES="unit e2e" runs some of them
#   make test-kernel  the kernel module in virtual machines alone; make test runs it too
#   make fuzz       run every fuzz harness; FUZZ_SECONDS=60 is the time of each
#   make bench      compare with the other programs
#   make bench-reference  repeat the published measurements, ours beside theirs
#   make docs       regenerate docs/configuration.md
#   make format     clang-format
#   make install    meson install; DESTDIR is honoured
#   make clean      remove all build folders

SUITES =
FUZZ_SECONDS = 60

# LeakSanitizer and the undefined-behaviour checks are parts of these two.
SANITIZERS = -Db_sanitize=address,undefined -Db_lundef=false

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: all run test test-kernel build-asan build-clang build-fuzz fuzz bench bench-reference docs format install clean

all:
	@tools/setup build
	@tools/configure build -Doptimization=2 -Dtests=false
	@ninja -C build

run: all
	@tools/setup run
	@tools/run-demo

build-asan:
	@tools/setup build test
	@tools/configure build-asan --buildtype=debugoptimized $(SANITIZERS)
	@ninja --quiet -C build-asan

build-clang:
	@tools/setup build test
	@CC=clang tools/configure build-clang --buildtype=debugoptimized
	@ninja --quiet -C build-clang

build-fuzz:
	@tools/setup build test
	@CC=clang tools/configure build-fuzz --buildtype=debugoptimized -Dfuzz=true $(SANITIZERS)
	@ninja --quiet -C build-fuzz

test: all build-asan build-clang
	@tools/test-kernel --prepare
	@tools/run-tests $(SUITES)

test-kernel: all
	@tools/test-kernel

fuzz: build-fuzz
	@tools/run-fuzz build-fuzz $(FUZZ_SECONDS)

bench: all
	@tools/setup bench
	@bench/run-all

bench-reference: all
	@tools/setup bench
	@bench/reference

docs: all
	@build/sallyport keywords --markdown > build/configuration.md
	@mkdir -p docs && mv build/configuration.md docs/configuration.md

format:
	@tools/setup format
	@find src include kmod tests fuzz -name '*.[ch]' -exec grep -L 'generated' {} + 2>/dev/null | \
	    xargs -r clang-format -i

install: all
	@meson install -C build --no-rebuild

clean:
	@rm -rf build build-asan build-clang build-fuzz

"""
The kernel module sallyport_crypto and the sweep's `kernel` implementation, in virtual machines: Debian's kernel under
QEMU's software emulation, with a virtio crypto device and the fake device of kmod/, and user-mode Linux.

The guest boots once and runs all cases (guest_cases); each test judges one of them. No speed is asserted. Without a tool
or package the tests are skipped and say what is missing; with CI=true in the environment that is a failure.
"""

import csv
import os
import re
import subprocess
import unittest

import guest

PROGRAM = os.path.join(guest.BUILD, "sallyport")
PROBE = os.path.join(guest.BUILD, "tests", "kernel", "kernel_probe")
IS_CI = os.environ.get("CI") == "true"

SIZES_64K = [16 << i for i in range(13)]
SIZES_4M = [16 << i for i in range(19)]
COLUMNS = (
    "driver,priority,op,key_bits,mode,threads,depth,request_bytes,requests,bytes,elapsed_ns,busy_ns,"
    "async_requests,errors,p50_ns,p99_ns,status"
).split(",")

# Debian's kernel checks the virtio device's RSA at registration, and QEMU's backend fails that check: a warning of
# testmgr that is none of our doing.
KNOWN_COMPLAINT = re.compile(r"WARNING: .* at crypto/testmgr\.c:\d+ alg_test")

cases = {}  # name: Case
console = ""
ended = False


class Case:
    """What the guest wrote between "## begin NAME" and "## end"."""

    def __init__(self, text):
        self.text = text
        self.lines = text.splitlines()
        self.runs = [Run(part) for part in re.split(r"(?m)^(?=load )", text)[1:]]

    def values(self, word):
        """The rest of each line that begins with the word."""
        return [line[len(word) + 1 :] for line in self.lines if line.startswith(word + " ")]

    def device(self):
        """The fake device's counts, as last shown."""
        return {name: int(count) for name, count in (line.split() for line in self.values("device")
                                                     if len(line.split()) == 2 and line.split()[1].isdigit())}


class Run(Case):
    """One load of the module."""

    def __init__(self, text):
        self.text = text
        self.lines = text.splitlines()
        self.status = int(self.lines[0].split()[1])
        self.state = "\n".join(self.values("state"))
        rows = list(csv.reader(self.values("row")))
        self.header = rows[0] if rows else None
        self.rows = [dict(zip(COLUMNS, row)) for row in rows[1:]]
        self.log = self.values("log")

    def numbers(self, column):
        return [int(row[column]) for row in self.rows]


def missing(reason):
    if IS_CI:
        raise RuntimeError("CI=true, and " + reason)
    raise unittest.SkipTest(reason)


def has_sweep():
    """Whether build/sallyport is there and has the sweep's command line."""
    if not os.path.exists(PROGRAM):
        return False
    done = subprocess.run([PROGRAM, "crypto", "sweep", "--help"], capture_output=True, text=True, check=False)
    return done.returncode == 0


def setUpModule():
    global console, ended
    try:
        version = guest.headers_version()
        guest.need("make", "gcc", guest.QEMU)
        image = guest.kernel_image(version)
        modules = guest.build_modules(version)
        if not os.path.exists(PROBE):
            raise guest.Missing("%s is not built (tools/test-kernel --prepare)" % PROBE)
        programs = [PROBE]
        if has_sweep():
            programs.append(PROGRAM)
        root = guest.qemu_root(version, image, modules, programs)
        if PROGRAM in programs:
            guest.copy(os.path.join(guest.HERE, "guest_cli"), root, "cli")
        text, console, ended = guest.boot_qemu(version, image, root)
    except guest.Missing as reason:
        missing(str(reason))
    for name, body in re.findall(r"(?ms)^## begin (\S+) [0-9.]+\n(.*?)^## end", text):
        cases[name] = Case(body)


class KernelTest(unittest.TestCase):
    maxDiff = None

    def case(self, name):
        if name not in cases:
            self.fail("the guest did not come to the case %s; its console ends with:\n%s" % (name, console[-3000:]))
        return cases[name]

    def only_run(self, name):
        (run,) = self.case(name).runs
        return run

    def check_table(self, run, driver, sizes, threads, depth, share):
        """Every size in both modes, figures that add up, nothing wrong; share: None, 0 or 1 of requests asynchronous."""
        self.assertEqual(run.state, "done", run.text)
        self.assertEqual(run.header, COLUMNS)
        points = [(int(row["request_bytes"]), row["mode"]) for row in run.rows]
        self.assertEqual(points, [(size, mode) for size in sizes for mode in ("single", "concurrent")])
        for row in run.rows:
            self.assertEqual(row["driver"], driver)
            self.assertEqual(row["status"], "ok", row)
            self.check_row(row, share)
            expected = (1, 1) if row["mode"] == "single" else (threads, depth)
            self.assertEqual((int(row["threads"]), int(row["depth"])), expected)
        self.assertIn("unload ok", run.lines)

    def check_row(self, row, share):
        requests = int(row["requests"])
        self.assertGreaterEqual(requests, int(row["threads"]), row)
        self.assertEqual(int(row["bytes"]), requests * int(row["request_bytes"]), row)
        self.assertEqual(int(row["errors"]), 0, row)
        self.assertGreater(int(row["elapsed_ns"]), 0)
        # 2 CPUs cannot be busier than all the time.
        self.assertLessEqual(int(row["busy_ns"]), 2 * int(row["elapsed_ns"]))
        self.assertLessEqual(int(row["p50_ns"]), int(row["p99_ns"]))
        if share is not None:
            self.assertEqual(int(row["async_requests"]), share * requests, row)


class DriverTest(KernelTest):
    def test_guest_ran_to_its_end(self):
        self.assertTrue(ended, "the guest was stopped after %d s:\n%s" % (guest.QEMU_SECONDS, console[-3000:]))
        self.case("health")

    def test_drivers_are_registered(self):
        found = self.case("drivers").values("driver")
        for name, driver in (
            ("xts(aes)", "xts-aes-aesni"),
            ("cbc(aes)", "cbc-aes-aesni"),
            ("__xts(aes)", "cryptd(__xts-aes-aesni)"),
            ("cbc(aes)", "virtio_crypto_aes_cbc"),
        ):
            self.assertIn("%s %s" % (name, driver), found)

    def test_aesni_up_to_4_mib_is_synchronous(self):
        self.check_table(self.only_run("aesni"), "xts-aes-aesni", SIZES_4M, 3, 1, 0)

    def test_cryptd_is_asynchronous(self):
        self.check_table(self.only_run("cryptd"), "cryptd(__xts-aes-aesni)", SIZES_64K, 3, 4, 1)

    def test_virtio_device_is_asynchronous(self):
        self.check_table(self.only_run("virtio"), "virtio_crypto_aes_cbc", SIZES_64K, 3, 2, 1)

    def test_defaults_and_printed_rows(self):
        case = self.case("defaults")
        run = self.only_run("defaults")
        self.check_table(run, "cbc-aes-aesni", [16, 32], 4, 1, 0)
        self.assertEqual(run.numbers("key_bits"), [256] * 4)
        printed = [re.match(r"(\S+), encrypt, (\w+) \d+x\d+, (\d+) bytes: (\d+) requests", line).groups()
                   for line in case.values("printed")]
        self.assertEqual(
            printed, [(row["driver"], row["mode"], row["request_bytes"], row["requests"]) for row in run.rows]
        )

    def test_every_kind_of_algorithm_is_checked_against_the_generic(self):
        runs = self.case("algorithms").runs
        self.assertEqual(len(runs), 11)
        generic = [
            "ctr(aes-generic)", "gcm_base(ctr(aes-generic),ghash-generic)",
            "rfc7539(chacha20-generic,poly1305-generic)", "authenc(hmac(sha256-generic),cbc(aes-generic))",
            "sha256-generic", "sha512-generic", "sha1-generic", "hmac(sha256-generic)",
            "gcm_base(ctr(aes-generic),ghash-generic)", "xts(ecb(aes-generic))", "sha256-generic",
        ]
        operations = ["encrypt"] * 4 + ["digest"] * 4 + ["decrypt"] * 2 + ["digest"]
        for run, name, op in zip(runs, generic, operations):
            self.assertEqual(run.state, "done", run.text)
            self.assertTrue(run.log[0].endswith("checked against " + name), run.log)
            self.assertTrue(run.rows)
            for row in run.rows:
                self.assertEqual((row["status"], row["op"]), ("ok", op), row)
                self.check_row(row, None)
        self.assertEqual(runs[-1].numbers("request_bytes"), [1, 2, 4])
        self.assertEqual({row["mode"] for row in runs[-1].rows}, {"single"})


class FaultTest(KernelTest):
    """The fake device on its bad days."""

    def check_unloaded(self, name):
        self.assertIn("unload ok", self.case(name).lines)
        self.assertIn("device unload ok", self.case(name).lines)
        self.assertEqual(self.case(name).device()["waiting"], 0)

    def test_healthy(self):
        run = self.only_run("fake")
        self.check_table(run, "cbc-aes-sallyport-fake", [16 << i for i in range(9)], 2, 4, 1)
        device = self.case("fake").device()
        # One request a size is the check before the clock runs.
        self.assertEqual(device["completed"], sum(run.numbers("requests")) + 9)
        self.assertEqual(device["backlogged"], 0)
        self.check_unloaded("fake")

    def test_backlog(self):
        run = self.only_run("backlog")
        device = self.case("backlog").device()
        self.assertEqual(run.state, "done")
        self.assertEqual(sum(run.numbers("errors")), 0)
        self.assertGreater(device["backlogged"], 0)
        self.assertEqual(device["refused"], 0)
        self.assertEqual(device["completed"], sum(run.numbers("requests")) + 3)
        self.assertEqual(device["accepted"] + device["backlogged"], device["completed"])
        self.check_unloaded("backlog")

    def test_failing(self):
        run = self.only_run("failing")
        device = self.case("failing").device()
        self.assertEqual(run.state, "done")
        self.assertEqual(run.numbers("errors"), [device["failed"]])
        self.assertEqual(run.numbers("requests"), [device["completed"] - 1])
        self.assertEqual(run.numbers("bytes"), [16 * (device["completed"] - 1)])
        self.assertEqual(device["failed"], (device["failed"] + device["completed"]) // 10)
        self.check_unloaded("failing")

    def test_failing_always(self):
        run = self.only_run("failing_always")
        self.assertEqual(run.state, "failed: cbc-aes-sallyport-fake fails a request of 16 bytes: -EIO")
        self.assertEqual(run.rows, [])
        self.check_unloaded("failing_always")

    def test_wrong_results_are_not_timed(self):
        run = self.only_run("wrong")
        self.assertIn("gives a wrong result at 16 bytes: it differs from cbc(aes-generic)'s", run.state)
        self.assertEqual(run.rows, [])
        self.check_unloaded("wrong")

    def test_results_that_go_wrong_later_are_found(self):
        run = self.only_run("wrong_later")
        self.assertIn("gave a wrong result at 16 bytes during the timed run", run.state)
        self.assertEqual([row["status"] for row in run.rows], ["wrong"])
        self.check_unloaded("wrong_later")

    def test_lost_completion(self):
        case = self.case("losing")
        run = self.only_run("losing")
        self.assertIn("did not complete 1 request(s) of 16 bytes within 300 ms; what it holds is not freed", run.state)
        self.assertEqual([row["status"] for row in run.rows], ["lost"])
        self.assertEqual(run.numbers("requests"), [18])  # the 20th is lost, the first was the check
        self.assertEqual(case.device()["lost"], 1)
        # While the device holds it, neither goes; afterwards both do.
        order = [line for line in case.lines if re.match(r"(device )?unload ", line)]
        self.assertEqual(order, ["unload refused", "device unload refused", "unload ok", "device unload ok"])
        self.assertEqual(case.values("loaded"), ["sallyport_crypto 1", "sallyport_fakedev 1"])
        self.assertIn("completed what it had lost: memory and references are given back", "".join(case.values("log")))

    def test_many_lost_completions_of_several_threads(self):
        case = self.case("losing_many")
        run = self.only_run("losing_many")
        # Every second one is lost, until all are that 2 threads of 8 can have in flight.
        self.assertEqual(case.device()["lost"], 16)
        self.assertIn("did not complete 16 request(s) of 16 bytes", run.state)
        self.assertEqual([row["status"] for row in run.rows], ["lost"])
        order = [line for line in case.lines if re.match(r"(device )?unload ", line)]
        self.assertEqual(order, ["unload refused", "device unload refused", "unload ok", "device unload ok"])

    def test_lost_at_once(self):
        case = self.case("losing_at_once")
        self.assertIn("did not complete a request of 16 bytes within 300 ms", self.only_run("losing_at_once").state)
        order = [line for line in case.lines if re.match(r"(device )?unload ", line)]
        self.assertEqual(order, ["unload refused", "unload ok", "device unload ok"])

    def test_disappearing_device(self):
        run = self.only_run("disappearing")
        device = self.case("disappearing").device()
        self.assertEqual(run.state, "failed: cbc-aes-sallyport-fake: the device is gone (-ENODEV)")
        self.assertEqual([row["status"] for row in run.rows], ["gone"])
        self.assertEqual(run.numbers("requests"), [49])  # 50, and the first was the check
        self.assertEqual(run.numbers("errors"), [device["vanished"]])
        self.check_unloaded("disappearing")

    def test_unloading_stops_a_run(self):
        case = self.case("stopping")
        order = [line for line in case.lines if re.match(r"(device )?unload ", line)]
        self.assertEqual(order, ["unload ok", "unload ok", "device unload ok"])
        # The run was to last 100 s.
        self.assertLess(int(case.values("took")[0]), 50)

    def test_unloading_while_the_device_hangs(self):
        """rmmod waits for the device, or is refused when the module knew already; nothing is left in the end."""
        case = self.case("unload_while_hung")
        self.assertIn("device unload ok", case.lines)
        self.assertIn("completed what it had lost", "".join(case.values("log")))

    def test_nothing_leaks(self):
        case = self.case("leaks")
        memory = {}
        for line in case.values("memory"):
            when, name, kilobytes = line.split()
            memory[when, name.rstrip(":")] = int(kilobytes)
        # A round allocates 512 requests in 1024 pages: lost in 12 rounds, they would be 48 MiB of pages, or more than
        # 600 KiB of the slab for the smallest kind of object that each has.
        for before, after in (("before", "after"), ("lost-before", "lost-after")):
            self.assertLess(memory[before, "MemFree"] - memory[after, "MemFree"], 8 << 10, memory)
            self.assertLess(memory[after, "SUnreclaim"] - memory[before, "SUnreclaim"], 400, memory)
            self.assertLess(memory[after, "VmallocUsed"] - memory[before, "VmallocUsed"], 200, memory)
        self.assertEqual(case.lines.count("device unload ok"), 6)


class ParameterTest(KernelTest):
    """What each kind of bad parameter is told; nothing stays loaded."""

    EXPECTED = {
        "driver_missing": (22, r"driver=: expected a driver or algorithm of the crypto API, as in /proc/crypto"),
        "driver_unknown": (2, r"driver=no-such-driver: the kernel has no such cipher, AEAD or hash, expected .*"),
        "driver_template": (2, r"driver=cbc\(no-such\): the kernel has no such cipher, AEAD or hash, expected .*"),
        "algorithm": (22, r"driver=xts-aes-aesni: implements xts\(aes\), expected cbc\(aes\)"),
        "op": (22, r"op=sign: expected encrypt, decrypt or digest"),
        "op_of_hash": (2, r"driver=sha256: the kernel has no such cipher or AEAD, expected .*"),
        "op_of_cipher": (2, r"driver=xts-aes-aesni: the kernel has no such hash, expected .*"),
        "mode": (22, r"mode=fast: expected single, concurrent or both"),
        "size_zero": (22, r"size_min=0: expected 1 to 67108864"),
        "size_order": (22, r"size_min=64: expected at most size_max=32"),
        "size_large": (22, r"size_max=67108865: expected 1 to 67108864"),
        "size_granule": (22, r"size_min=24: expected a multiple of 16, at least 16, for cbc-aes-aesni"),
        "size_short": (22, r"size_min=8: expected a multiple of 1, at least 16, for xts-aes-aesni"),
        "key_zero": (22, r"key_bits=0: expected a key size that xts-aes-aesni takes \(-EINVAL\)"),
        "key_odd": (22, r"key_bits=129: expected a key size that xts-aes-aesni takes \(-EINVAL\)"),
        "key_refused": (22, r"key_bits=512: expected a key size that cbc-aes-aesni takes \(-EINVAL\)"),
        "key_of_hash": (22, r"key_bits=128: expected none, sha256-\S+ takes no key"),
        "threads_zero": (22, r"threads=0: expected 1 to 1024"),
        "threads_large": (22, r"threads=1025: expected 1 to 1024"),
        "threads_word": (22, r"`many' invalid for parameter `threads'"),
        "depth_zero": (22, r"depth=0: expected 1 to 1024"),
        "msec_zero": (22, r"msec=0: expected 1 to 600000"),
        "timeout": (22, r"timeout_ms=1: expected 10 to 600000"),
        "in_place": (22, r"in_place=1: expected 0 with op=decrypt of an AEAD, .*"),
        "memory": (12, r"threads=1024 depth=1024 size_max=67108864: need \d+ MiB, expected at most a quarter .*"),
    }

    def test_bad_parameters(self):
        for name, (status, message) in self.EXPECTED.items():
            with self.subTest(name):
                run = self.only_run("bad_" + name)
                self.assertEqual(run.status, status, run.text)
                self.assertEqual(len(run.log), 1, run.log)
                self.assertRegex(run.log[0], "^%s$" % message)

    def test_all_cases_are_judged(self):
        self.assertEqual({name for name in cases if name.startswith("bad_")}, {"bad_" + name for name in self.EXPECTED})


class ImplementationTest(KernelTest):
    """src/measure/impl/kernel.c, by kernel_probe."""

    def test_points(self):
        case = self.case("probe")
        results = case.values("probe")
        shares = [0, 0, 0, 0, 0, 1, 1]
        sizes = [65536, 1024, 4096, 4096, 100, 4096, 4096]
        self.assertEqual(len(results), 2 * len(sizes), case.text)
        for share, size, device, result in zip(shares, sizes, results[::2], results[1::2]):
            self.assertTrue(device.startswith("device Linux "), device)
            found = re.fullmatch(r"ok requests (\d+) bytes (\d+) async (\d+) errors 0 elapsed 1 busy 1 latency 1", result)
            self.assertIsNotNone(found, result)
            requests, count, asynchronous = map(int, found.groups())
            self.assertGreater(requests, 0)
            self.assertEqual(count, requests * size)
            self.assertEqual(asynchronous, share * requests)
        self.assertNotIn("still loaded", case.text)

    def test_refusals(self):
        case = self.case("probe_refusals")
        results = [line for line in case.values("probe") if not line.startswith("device Linux")]
        expected = (
            "self_check status -12: driver=no-such-driver: the kernel has no such cipher or AEAD",
            "self_check status -12: driver=xts-aes-aesni: implements xts(aes), expected cbc(aes)",
            "self_check status -12: size_min=24: expected a multiple of 16",
            "device_open status -12: debugfs is not mounted",
            "device_open status -12: sallyport_crypto.ko is neither beside the program nor in kmod/",
            "self_check status -12: /bin/sallyport_crypto.ko was built for another kernel",
        )
        self.assertEqual(len(results), len(expected), case.text)
        for result, beginning in zip(results, expected):
            self.assertTrue(result.startswith(beginning), result)
        self.assertNotIn("still loaded", case.text)

    def test_faults(self):
        case = self.case("probe_faults")
        results = [line for line in case.values("probe") if not line.startswith("device Linux")]
        expected = (
            "self_check status -18: cbc-aes-sallyport-fake gives a wrong result at 16 bytes",
            "measure status -8: cbc-aes-sallyport-fake: the device is gone (-ENODEV)",
            "self_check status -11: cbc-aes-sallyport-fake did not complete a request of 16 bytes within 10000 ms",
            "self_check status -7: sallyport_crypto is loaded already",
        )
        self.assertEqual(len(results), len(expected), case.text)
        for result, beginning in zip(results, expected):
            self.assertTrue(result.startswith(beginning), result)
        self.assertEqual(case.values("still"), ["loaded 1", "loaded 1"])
        self.assertIn("device unload ok", case.lines)


class CommandTest(KernelTest):
    def test_sweep_with_the_kernel_implementation(self):
        if "cli" not in cases and not has_sweep():
            missing("build/sallyport is not built or has no crypto sweep")
        case = self.case("cli")
        self.assertIn("cli exit 0", case.lines, case.text)
        rows = list(csv.DictReader(case.values("cli row")))
        points = {(row["impl"], row["mode"], row["n"], row["request_bytes"]): row for row in rows}
        wanted = {
            (impl, mode, n, size)
            for impl in ("kernel", "kernel:virtio_crypto_aes_cbc")
            for mode, n in (("single", "1"), ("concurrent", "3"), ("depth", "4"))
            for size in ("16", "4096")
        }
        self.assertEqual(set(points), wanted, case.text)
        for (impl, *_), row in points.items():
            self.assertGreater(float(row["bytes_per_s"]), 0, row)
            self.assertGreater(float(row["bytes_per_cpu_s"]), 0, row)
            # AES-NI has the highest priority, and is synchronous.
            self.assertEqual(float(row["async_share"]), 0 if impl == "kernel" else 1, row)
        self.assertNotIn("still loaded", case.text)


class HealthTest(KernelTest):
    def test_kernel_has_no_complaint(self):
        case = self.case("health")
        self.assertGreater(int(case.values("lines")[0]), 100)
        lines = case.values("complaint")
        bad = [
            line
            for line in lines
            if re.search(r"BUG|WARNING|Oops|stall|blocked for more|leak|corrupt|general protection", line)
            and not KNOWN_COMPLAINT.search(line)
        ]
        self.assertEqual(bad, [], "\n".join(lines))
        bad = [
            line
            for line in console.splitlines()
            if re.search(r"BUG:|WARNING:|Oops|stall|Kernel panic", line) and not KNOWN_COMPLAINT.search(line)
        ]
        self.assertEqual(bad, [])


class UserModeLinuxTest(unittest.TestCase):
    """
    A kernel that runs natively, as a process. The module cannot be tried there: Debian has neither headers for its
    user-mode-linux kernel nor the source of exactly that version, and that kernel is built without debugfs. What can be
    tried is that the sweep says so.
    """

    def test_implementation_says_why_not(self):
        try:
            guest.need("linux.uml")
            text, in_time = guest.boot_uml(guest.uml_root([PROBE]))
        except guest.Missing as reason:
            missing(str(reason))
        self.assertTrue(in_time, text)
        self.assertIn("uml over", text)
        if "uml debugfs yes" in text:
            self.assertIn("sallyport_crypto.ko is neither beside the program", text)
        else:
            self.assertIn("probe device_open status -12: this kernel has no debugfs", text)

    def test_module(self):
        self.skipTest(
            "no module for user-mode Linux: Debian ships no headers for it, no source of its exact version, and no debugfs "
            "in its kernel"
        )


if __name__ == "__main__":
    unittest.main()

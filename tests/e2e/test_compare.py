"""`sallyport compare`: the file, the processes, the verdicts, the reports."""

import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import unittest

import harness
from harness import SALLYPORT, Case, ours_alone, require, run, wait_until

ENVIRONMENT = dict(os.environ, **harness.sanitizer_environment())

# Stands in for `sallyport bench`: asks once, then answers with the figures of its options.
FAKE = """#!%s
import json, os, random, socket, sys, time
words = sys.argv[1:]
def option(name, default):
    return words[words.index(name) + 1] if name in words else default
assert words[:2] == ["bench", "--json"], words
with open(option("--fake-log", os.devnull), "a") as log:
    cpus = sorted(os.sched_getaffinity(0))
    log.write(json.dumps({"words": words, "cpus": cpus}) + "\\n")
host, _, path = words[-1].split("://")[1].partition("/")
with socket.create_connection((host.split(":")[0], int(host.split(":")[1])), 10) as sock:
    sock.sendall(b"GET /" + path.encode() + b" HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
    answer = b""
    while True:
        part = sock.recv(65536)
        if not part:
            break
        answer += part
body = answer.split(b"\\r\\n\\r\\n", 1)[1].decode()
time.sleep(float(option("--fake-sleep", "0")))
if option("--fake-text", None):
    print("no JSON at all"); sys.stderr.write("bench: words of regret\\n"); sys.exit(3)
us = float(option("--fake-us", "100")) * random.uniform(0.99, 1.01)
errors, bad = int(option("--fake-errors", "0")), int(option("--fake-5xx", "0"))
latency = {"count": 1000, "min": 1, "mean": us, "stddev": 1, "p50": us, "p99": 3 * us, "max": 9 * us}
print(json.dumps({
    "tool": "sallyport bench", "url": words[-1], "requests": 1000, "errors": errors, "duration_s": 1.0,
    "rate": 1e6 / us, "latency_us": latency, "status": {"2xx": 1000 - bad, "4xx": 0, "5xx": bad},
    "error_counts": {"refused": errors}, "error_examples": {"refused": "connect to nowhere"} if errors else {},
    "client": {"is_limit": option("--fake-limit", "no") == "yes"},
    "server": {"pid": int(option("--server-pid", "0")), "cpu_us_a_request": us / 2}, "body": body,
}))
sys.exit(1 if errors else 0)
""" % sys.executable

# A server that says which variant it is, on the port that it is given.
SERVER = """
import os, signal, socket, sys
if "--stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "--fail" in sys.argv:
    print("server: cannot do it"); sys.exit(4)
if "--deaf" in sys.argv:
    print("server: listening to nobody", flush=True); signal.pause()
with open(os.environ.get("STARTS", os.devnull), "a") as log:
    log.write(os.environ["NAME"] + " " + str(os.getpid()) + " " + str(sorted(os.sched_getaffinity(0))) + "\\n")
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    sock, _ = listener.accept()
    with sock:
        words = sock.recv(4096).split(b" ")
        if len(words) > 2:
            body = os.environ["NAME"].encode() + b" " + words[1]
            sock.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
"""

PLAN = """
compare "Two servers"
    rounds %(rounds)d
    seed %(seed)d
    warmup %(warmup)s
    base slow
    %(extra)s
variant slow
    start %(python)s %(dir)s/server.py {port} %(slow)s
    env NAME={variant} STARTS=%(dir)s/starts
    url http://127.0.0.1:{port}/
    bench --fake-us 100 %(slow_bench)s
    %(slow_more)s
variant quick
    start %(python)s %(dir)s/server.py {port} %(quick)s
    env NAME={variant} STARTS=%(dir)s/starts
    url http://127.0.0.1:{port}/
    bench --fake-us 50 %(quick_bench)s
    %(quick_more)s
load one
    bench -c 3 --fake-log %(dir)s/bench.log
load two
    bench -c 3 --close
    path /size/{{9}
"""


def processes_of(folder):
    """Command lines that name the folder."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/cmdline" % entry, "rb") as file:
                    text = file.read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if folder in text and "sallyport" not in os.path.basename(text.split(" ")[0]) and "compare" not in text:
                found.append(text)
    return found


@ours_alone
class Compare(Case):
    def setUp(self):
        super().setUp()
        self.fake = self.write("fake", FAKE)
        os.chmod(self.fake, os.stat(self.fake).st_mode | stat.S_IXUSR)
        self.write("server.py", SERVER)
        self.html, self.json = self.path("out.html"), self.path("out.json")

    def plan(self, **changes):
        values = dict(rounds=5, seed=7, warmup="2s", extra="", slow="", quick="", slow_bench="", quick_bench="",
                      slow_more="", quick_more="", python=sys.executable, dir=self.folder)
        values.update(changes)
        return self.write("plan.compare", PLAN % values)

    def command(self, path, *options):
        return [SALLYPORT, "compare", "--bench", self.fake, "--json", self.json, "--html", self.html, *options, path]

    def compare(self, path, *options, status=0):
        done = subprocess.run(self.command(path, *options), capture_output=True, text=True, check=False, timeout=120,
                              env=dict(ENVIRONMENT, TMPDIR=self.folder))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn("Sanitizer", done.stderr)
        self.assertEqual(processes_of(self.folder), [])
        if "--keep" not in options:
            self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("sallyport-compare")], [])
        return done

    def document(self):
        with open(self.json, encoding="utf-8") as file:
            return json.load(file)

    def lines(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read().splitlines()

    def test_verdicts_and_reports(self):
        path = self.plan()
        text = self.compare(path).stdout
        self.assertRegex(text, r"quick +requests/s +(1\.9|2\.0)\d+ +\S+ to +\S+ +faster")
        self.assertRegex(text, r"CPU us/request +0\.(49|50)\d* +\S+ to +\S+ +less CPU")
        self.assertIn("5 of 5 rounds, seed 7, base slow", text)

        document = self.document()
        with open(path, encoding="utf-8") as file:
            source = file.read()
        self.assertEqual(document["file"]["text"], source)
        self.assertEqual(document["file"]["sha256"], hashlib.sha256(source.encode()).hexdigest())
        self.assertEqual((document["seed"], document["rounds"], document["rounds_done"]), (7, 5, 5))
        self.assertFalse(document["interrupted"] or document["refused"])
        self.assertIsNone(document["failure"])
        for name in ("cpu", "cores", "kernel", "governor"):
            self.assertTrue(document["machine"][name], name)
        programs = {program["name"]: program for program in document["machine"]["programs"]}
        self.assertIn("Sallyport version", programs["sallyport"]["version"])
        self.assertIn("Python 3", programs[sys.executable]["version"])
        self.assertEqual(len(programs["openssl"]["sha256"]), 64)
        quick = document["loads"][0]["variants"][1]
        self.assertEqual(quick["name"], "quick")
        self.assertEqual(quick["cpu_us"]["verdict"], "less CPU")
        self.assertEqual(sorted(quick["cpu_us"]["rounds"])[2], quick["cpu_us"]["median"])
        self.assertLessEqual(quick["rate"]["low"], quick["rate"]["ratio"])
        self.assertGreaterEqual(quick["rate"]["high"], quick["rate"]["ratio"])
        self.assertEqual(len(document["measurements"]), 5 * 2 * 2)
        for one in document["measurements"]:
            # The right server answered, on the path of the load, and bench was told its process.
            self.assertEqual(one["bench"]["body"], one["variant"] + (" /" if one["load"] == "one" else " /size/{9}"))
            self.assertGreater(one["bench"]["server"]["pid"], 1)
            self.assertIn("--warmup", one["command"])

        with open(self.html, encoding="utf-8") as file:
            page = file.read()
        self.assertGreaterEqual(page.count("<svg"), 8)
        self.assertIn("less CPU", page)
        self.assertIn(document["file"]["sha256"], page)
        self.assertNotIn("<script", page)

    def test_rounds_are_interleaved_and_repeatable(self):
        self.compare(self.plan(rounds=6))
        orders = self.document()["orders"]
        self.assertEqual([sorted(order) for order in orders], [["quick", "slow"]] * 6)
        self.assertGreater(len({tuple(order) for order in orders}), 1)
        starts = [line.split()[0] for line in self.lines("starts")]
        self.assertEqual(starts, [name for order in orders for name in order])
        self.assertEqual(len({line.split()[1] for line in self.lines("starts")}), 12)  # each afresh
        self.compare(self.plan(rounds=2, seed=1), "--seed", "7", "--rounds", "6")
        self.assertEqual(self.document()["orders"], orders)

    def test_variants_that_keep_running(self):
        self.compare(self.plan(rounds=3, quick_more="restart no"))
        starts = [line.split()[0] for line in self.lines("starts")]
        self.assertEqual((starts.count("slow"), starts.count("quick")), (3, 1))

    def test_few_rounds_have_no_interval(self):
        text = self.compare(self.plan(rounds=4)).stdout
        self.assertIn("too few rounds", text)
        self.assertNotIn("faster", text)
        self.assertIsNone(self.document()["loads"][0]["variants"][1]["rate"]["low"])

    def test_equals_show_no_difference(self):
        with open(self.plan(rounds=9), encoding="utf-8") as file:
            text = file.read().replace("--fake-us 50", "--fake-us 100")
        text = self.compare(self.write("plan.compare", text)).stdout
        self.assertIn("no difference shown", text)

    def test_client_at_its_limit_claims_no_rate(self):
        text = self.compare(self.plan(quick_bench="--fake-limit yes")).stdout
        self.assertIn("client at its limit", text)
        self.assertNotIn("faster", text)
        self.assertIn("less CPU", text)

    def test_failed_requests_are_not_compared(self):
        done = self.compare(self.plan(quick_bench="--fake-errors 7"), status=1)
        self.assertRegex(done.stderr, r"not compared: variant quick failed requests under load one in round 1: "
                                      r"7 refused \(connect to nowhere\)")
        self.assertNotIn("ratio", done.stdout)
        self.assertTrue(self.document()["refused"])
        done = self.compare(self.plan(slow_bench="--fake-5xx 3"), status=1)
        self.assertIn("variant slow failed requests", done.stderr)
        self.assertIn("3 answers 5xx", done.stderr)

    def test_bench_without_json(self):
        done = self.compare(self.plan(slow_bench="--fake-text x", quick_bench="--fake-text x"), status=1)
        self.assertIn("bench gave no JSON (exit status 3", done.stderr)
        self.assertIn("words of regret", done.stderr)

    def test_server_that_does_not_start(self):
        done = self.compare(self.plan(slow="--fail", quick="--fail"), status=1)
        self.assertIn("ended at its start", done.stderr)
        self.assertIn("server: cannot do it", done.stderr)
        begun = time.monotonic()
        done = self.compare(self.plan(slow="--deaf", quick="--deaf"), status=1)
        self.assertIn("not ready after 10 s", done.stderr)
        self.assertIn("server: listening to nobody", done.stderr)
        self.assertLess(time.monotonic() - begun, 20)
        done = self.compare(self.plan(extra="prepare echo no luck; exit 9"), status=1)
        self.assertIn("plan.compare:7: 'prepare' failed with exit status 9", done.stderr)
        self.assertIn("no luck", done.stderr)

    def test_server_that_does_not_stop_is_killed(self):
        self.compare(self.plan(rounds=1, slow="--stubborn"))
        self.assertEqual(self.document()["notes"], ["slow: had to be killed, 5 s after it was told to stop"])

    def test_shell_in_front_leaves_nobody_behind(self):
        path = self.plan(rounds=1)
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"start (.*server.py \{port\} )", r"""start sh -c "\1& wait" """, file.read())
        self.compare(self.write("plan.compare", text))
        self.assertEqual(self.document()["notes"], [])

    def test_measurement_that_takes_too_long(self):
        begun = time.monotonic()
        done = self.compare(self.plan(slow_bench="--fake-sleep 60", quick_bench="--fake-sleep 60", extra="timeout 1s"),
                            status=1)
        self.assertIn("bench had not ended after 1 s", done.stderr)
        self.assertLess(time.monotonic() - begun, 20)

    def test_interrupt_keeps_what_was_measured(self):
        path = self.plan(rounds=50, slow_bench="--fake-sleep 0.2")
        child = subprocess.Popen(self.command(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=dict(ENVIRONMENT, TMPDIR=self.folder))
        try:
            wait_until(lambda: os.path.exists(self.path("bench.log")) and len(self.lines("bench.log")) >= 5, "rounds")
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=30)
        finally:
            child.kill()
        self.assertEqual(child.returncode, 130, out + err)
        self.assertRegex(err, r"interrupted after \d+ of 200 measurements")
        self.assertIn("load one", out)
        self.assertEqual(processes_of(self.folder), [])
        document = self.document()
        self.assertTrue(document["interrupted"])
        self.assertGreaterEqual(len(document["measurements"]), 4)
        self.assertIsNotNone(document["loads"][0]["variants"][0]["rate"]["median"])

    def test_pinning(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("one CPU")
        self.compare(self.plan(rounds=1, extra="client-cpus %d" % cpus[1], slow_more="cpus %d" % cpus[0],
                               quick_more="cpus 1000"))
        self.assertEqual({tuple(json.loads(line)["cpus"]) for line in self.lines("bench.log")}, {(cpus[1],)})
        seen = dict(line.split(" ", 2)[::2] for line in self.lines("starts"))
        self.assertEqual(seen, {"slow": str([cpus[0]]), "quick": str(cpus)})
        self.assertEqual(self.document()["notes"], ["not pinned: this machine does not give us all of the CPUs 1000"])

    def test_skipped_variant(self):
        text = self.compare(self.plan(rounds=1, slow_more="needs no-such-program")).stdout
        self.assertIn("skipped variant slow: no-such-program is not installed", text)
        self.assertIn("base is quick: slow was skipped", text)
        done = self.compare(self.plan(slow_more="needs no-such-program", quick_more="needs no-such-program"), status=1)
        self.assertIn("no variant is left", done.stderr)

    def test_files_services_and_ready(self):
        path = self.write("plan.compare", """
compare files
    rounds 1
    warmup 0
    prepare sallyport -v > {dir}/version && echo "made by $SALLYPORT" > made
file text
port {port} of {variant}, {extra}; origin {port.origin}
{ nginx braces } and {{name}
end
service origin
    start sallyport origin --listen 127.0.0.1:{port} --size 10
variant a
    start sallyport origin --listen 127.0.0.1:{port} --dir {dir}
    set extra more of {variant} # as it stands
    url http://127.0.0.1:{port}/text
    stop kill -TERM $(cat no-such-file 2>/dev/null) 2>/dev/null || exit 1
load l
    bench --fake-us 10
""")
        done = self.compare(path, "--keep")
        answer = self.document()["measurements"][0]["bench"]
        port = re.search(r":(\d+)/text", answer["url"]).group(1)
        self.assertRegex(answer["body"], r"\Aport %s of a, more of a # as it stands; origin \d+\n"
                                         r"\{ nginx braces \} and \{name\}\n\Z" % port)
        self.assertNotIn("--warmup", self.document()["measurements"][0]["command"])
        self.assertEqual(self.document()["started"]["a"]["files"]["text"], answer["body"])
        kept = re.search(r"kept (\S+)", done.stderr).group(1)
        with open(os.path.join(kept, "version"), encoding="utf-8") as file:
            self.assertIn("Sallyport", file.read())
        with open(os.path.join(kept, "made"), encoding="utf-8") as file:
            self.assertIn(os.path.realpath(SALLYPORT), file.read())
        self.assertIn("a: its stop command failed", self.document()["notes"])

    def test_errors_of_the_file(self):
        path = self.write("bad.compare", """compare x
    round 5
    rounds 0
    warmup soon
    base hap
    cpus 1
variant haproxy
    start 'haproxy
    url ftp://x
    stop SIGFOO
    set dir x
    env NAME
variant haproxy
    whatever
load l
    bench {prot}
file f
  {nope}
end
junk
file g
""")
        done = subprocess.run([SALLYPORT, "compare", path], capture_output=True, text=True, check=False, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 1)
        lines = [re.match(r"(.*):(\d+): error: (.*)", line).groups() for line in done.stderr.splitlines()]
        self.assertEqual({name for name, _, _ in lines}, {path})
        found = {int(number): text for _, number, text in lines}
        for number, text in {
            2: "did you mean 'rounds'", 3: "expected a number from 1 to 99, got '0'", 4: "got 'soon'",
            5: "no variant has the name 'hap'", 6: "'cpus'", 8: "a quote is not closed", 9: "got 'ftp://x'",
            10: "got 'SIGFOO'", 11: "got 'dir'", 12: "expected NAME=VALUE, got 'NAME'", 13: "there is one of that name",
            16: "'{prot}'", 18: "'{nope}'", 20: "expected a section", 21: "expected a line 'end'",
        }.items():
            self.assertIn(text, found.get(number, ""), "line %d: %s" % (number, done.stderr))

    def test_arguments(self):
        for words, status, text in (
            ([], 2, "expected a FILE"), (["--rounds"], 2, "needs a value"), (["--rounds", "0", "x"], 2, "from 1 to 99"),
            (["--what", "x"], 2, "unknown argument"), (["a", "b"], 2, "unknown argument"),
            (["/no/such/file"], 1, "No such file"), (["--help"], 0, "usage: sallyport compare"),
            (["--json", "/no/such/dir/x", self.plan()], 1, "/no/such/dir/x"),
        ):
            done = subprocess.run([SALLYPORT, "compare", *words], capture_output=True, text=True, check=False,
                                  env=ENVIRONMENT)
            self.assertEqual(done.returncode, status, words)
            self.assertIn(text, done.stdout + done.stderr)

    def test_shipped_files(self):
        folder = os.path.join(harness.ROOT, "bench")
        names = [name for name in os.listdir(folder) if name.endswith(".compare")]
        self.assertGreaterEqual(len(names), 4)
        for name in names:
            run(SALLYPORT, "compare", "--check", os.path.join(folder, name), env=ENVIRONMENT)

    def test_real_programs(self):
        """The real bench, HAProxy, nginx and the load balancer, once around."""
        require("haproxy", "nginx", "openssl")
        if "usage: sallyport bench" not in subprocess.run([SALLYPORT, "bench", "--help"], capture_output=True, text=True,
                                                         check=False, env=ENVIRONMENT).stdout:
            self.skipTest("this build has no sallyport bench")
        for name, variants in (("page-sizes", 3), ("new-vs-resumed", 3), ("four-modes", 6)):
            with open(os.path.join(harness.ROOT, "bench", name + ".compare"), encoding="utf-8") as file:
                text = re.sub(r"-d [0-9]+s", "-n 60", file.read())
            text = re.sub(r"warmup \S+", "warmup 0", text).replace("rsa:4096", "rsa:2048")
            path = self.write(name + ".compare", text)
            done = subprocess.run([SALLYPORT, "compare", "--rounds", "1", "--json", self.json, path], check=False,
                                  capture_output=True, text=True, timeout=180, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            document = self.document()
            for load in document["loads"]:
                self.assertGreaterEqual(len(load["variants"]), variants)
                for variant in load["variants"]:
                    self.assertGreater(variant["rate"]["median"], 0)


if __name__ == "__main__":
    unittest.main()

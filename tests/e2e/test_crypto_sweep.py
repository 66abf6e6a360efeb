"""`sallyport crypto sweep`: what it lists, measures, writes and refuses."""

import csv
import io
import json
import os
import signal
import stat
import subprocess
import unittest

import harness
from harness import SALLYPORT, Case, ours_alone, wait_until

ENVIRONMENT = dict(os.environ, **harness.sanitizer_environment())
# An earlier table in the published form.
PUBLISHED = """request_bytes,single_card_bytes_per_s,single_cpu_bytes_per_s
16,1000,2000
4096,90000,80000
"""


@ours_alone
class SweepCase(Case):
    def sweep(self, *words, code=0, timeout=120):
        done = subprocess.run([SALLYPORT, "crypto", "sweep", *map(str, words)], capture_output=True, text=True,
                              timeout=timeout, env=ENVIRONMENT, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def short(self, *words, **options):
        return self.sweep("--slice", 2, "--rounds", 2, "--quiet", *words, **options)

    def refuse(self, option, value, expected):
        """One message that names the option, what it takes and what it got; nothing else happens."""
        done = self.sweep(option, value, code=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("sallyport crypto sweep: %s: expected " % option), done.stderr)
        self.assertIn(expected, done.stderr)
        self.assertIn("got '", done.stderr)


class Run(SweepCase):
    def test_list(self):
        lines = self.sweep("--list").stdout.split("\n")
        self.assertIn("openssl[:PROVIDER|engine=ENGINE]", lines)
        at = lines.index("openssl[:PROVIDER|engine=ENGINE]")
        self.assertRegex(lines[at + 2], r"^    here: OpenSSL 3\.")

    def test_help(self):
        text = self.sweep("--help").stdout
        self.assertIn("usage: sallyport crypto sweep", text)
        for option in ("--impl", "--algo", "--sizes", "--mode", "--rounds", "--slice", "--seconds", "--in-place",
                       "--out-of-place", "--csv", "--json", "--html", "--compare-with", "--list", "--quiet"):
            self.assertIn(option, text)
        done = subprocess.run([SALLYPORT, "crypto", "--help"], capture_output=True, text=True, check=True)
        self.assertIn("sallyport crypto sweep", done.stdout)
        self.assertIn("sallyport crypto asym", done.stdout)

    def test_figures(self):
        """Each cell once, figures that agree with each other, the same ones in CSV and JSON."""
        table, document, page = self.path("t.csv"), self.path("t.json"), self.path("t.html")
        done = self.short("--impl", "openssl,openssl-update", "--algo", "aes-128-cbc,aes-256-gcm,sha256", "--sizes",
                          "16,100,1k..4KiB", "--mode", "single,concurrent:3,depth:4", "--csv", table, "--json", document,
                          "--html", page)
        self.assertEqual(done.stderr, "")
        self.assertIn("aes-256-gcm", done.stdout)
        with open(table, encoding="ascii", newline="") as file:
            rows = list(csv.DictReader(file))
        keys = [(r["algorithm"], r["mode"], r["n"], r["request_bytes"], r["impl"]) for r in rows]
        self.assertEqual(sorted(set(keys)), sorted(keys))
        self.assertEqual({key[1:3] for key in keys}, {("single", "1"), ("concurrent", "3"), ("depth", "4")})
        self.assertEqual({key[3] for key in keys}, {"16", "100", "1024", "2048", "4096"})
        self.assertEqual(len(rows), 3 * 3 * 5 * 2)
        for row in rows:
            if row["algorithm"] == "aes-128-cbc" and row["request_bytes"] == "100":
                self.assertEqual(row["why_not"], "aes-128-cbc takes multiples of 16 bytes")
                self.assertEqual(row["bytes_per_s"], "")
                continue
            self.assertEqual(row["why_not"], "")
            rate = float(row["bytes_per_s"])
            self.assertGreater(int(row["requests"]), 0)
            self.assertEqual(row["errors"], "0")
            self.assertEqual(float(row["async_share"]), 0)
            self.assertLessEqual(float(row["bytes_per_s_low"]), rate)
            self.assertGreaterEqual(float(row["bytes_per_s_high"]), rate)
            self.assertAlmostEqual(float(row["requests_per_s"]) * int(row["request_bytes"]) / rate, 1, 2)
            self.assertLessEqual(float(row["p50_us"]), float(row["p99_us"]))
        with open(document, encoding="utf-8") as file:
            self.assertIsInstance(json.load(file), dict)
        with open(page, encoding="utf-8") as file:
            self.assertIn("<svg", file.read())

    def test_provider(self):
        self.short("--impl", "openssl:default", "--algo", "aes-128-ctr", "--sizes", "16")

    def test_words_with_commas(self):
        """A comma in parentheses, or before a parameter, is not the list's."""
        table = self.path("t.csv")
        names = ["af_alg:authenc(hmac(sha256-no),cbc(aes-no))", "cryptodev:crypto_nobody,worker=x,mode=y", "openssl:nobody"]
        self.short("--impl", ",".join(["openssl", *names]), "--algo", "sha1", "--sizes", "16", "--mode", "single", "--csv",
                   table, code=1)
        with open(table, encoding="ascii", newline="") as file:
            rows = {row["impl"]: row for row in csv.DictReader(file)}
        self.assertEqual(set(rows), {"openssl", *names})
        for name in names:
            self.assertNotEqual(rows[name]["why_not"], "")

    def test_in_place(self):
        table = self.path("t.csv")
        self.short("--impl", "openssl", "--algo", "aes-256-xts", "--sizes", "17", "--in-place", "--csv", table)
        with open(table, encoding="ascii", newline="") as file:
            self.assertEqual({row["in_place"] for row in csv.DictReader(file)}, {"1"})

    def test_compare_with(self):
        """An earlier table of our own, and one of the published form."""
        earlier, published = self.path("earlier.csv"), self.path("published.csv")
        words = ["--impl", "openssl", "--algo", "aes-128-ctr", "--sizes", "16,4k", "--mode", "single"]
        self.short(*words, "--csv", earlier)
        self.assertIn("earlier.csv", self.short(*words, "--compare-with", earlier).stdout)
        with open(published, "w", encoding="ascii") as file:
            file.write(PUBLISHED)
        self.assertIn("published.csv", self.short(*words, "--compare-with", published).stdout)

    def test_output_files(self):
        """Readable as the umask says; a device is written to and not replaced; nothing else is left in the folder."""
        table = self.path("out/t.csv")
        os.mkdir(self.path("out"))
        words = ["--impl", "openssl", "--algo", "sha1", "--sizes", "16", "--mode", "single"]
        self.short(*words, "--csv", table, "--json", "/dev/null")
        self.assertEqual(os.listdir(self.path("out")), ["t.csv"])
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(table).st_mode), 0o666 & ~mask)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_csv_to_a_pipe(self):
        done = self.short("--impl", "openssl", "--algo", "sha1", "--sizes", "16", "--mode", "single", "--csv",
                          "/dev/stderr")
        self.assertEqual(len(list(csv.DictReader(io.StringIO(done.stderr)))), 1)

    def test_missing(self):
        """What was named and is not there is listed with its reason, and fails the run that goes on without it."""
        table = self.path("t.csv")
        done = self.short("--impl", "openssl:nobody,openssl", "--algo", "sha1", "--sizes", "16", "--mode", "single",
                          "--csv", table, code=1)
        self.assertIn("no openssl:nobody: OpenSSL loads no provider 'nobody'", done.stderr)
        with open(table, encoding="ascii", newline="") as file:
            rows = {row["impl"]: row for row in csv.DictReader(file)}
        self.assertEqual(rows["openssl:nobody"]["why_not"], "OpenSSL loads no provider 'nobody'")
        self.assertGreater(float(rows["openssl"]["bytes_per_s"]), 0)

    def test_nothing_to_measure(self):
        done = self.short("--impl", "openssl-update", "--algo", "aes-128-cbc-hmac-sha1", "--sizes", "16", code=1)
        self.assertIn("nothing to measure on openssl-update: ", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_budget(self):
        """The slice follows from the seconds; a run says what it will take."""
        done = self.sweep("--seconds", 2, "--impl", "openssl", "--algo", "sha1", "--sizes", "16", "--mode", "single",
                          "--rounds", 3)
        self.assertRegex(done.stderr, r"3 slices of [\d.]+ ms, about 0:0")

    def test_interrupt(self):
        """Ctrl-C: exit status 130, no file, no part of one."""
        os.mkdir(self.path("out"))
        with subprocess.Popen([SALLYPORT, "crypto", "sweep", "--impl", "openssl", "--seconds", "600", "--csv",
                               self.path("out/t.csv")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=ENVIRONMENT) as process:
            try:
                wait_until(lambda: harness.signal_is_handled(process.pid, signal.SIGINT), "the handler of SIGINT")
                process.send_signal(signal.SIGINT)
                out, errors = process.communicate(timeout=60)
            finally:
                process.kill()
        self.assertEqual(process.returncode, 130, errors)
        self.assertEqual(out, "")
        self.assertIn("interrupted", errors)
        self.assertEqual(os.listdir(self.path("out")), [])


class Refusals(SweepCase):
    def test_impl(self):
        self.refuse("--impl", "nothing", "names that --list shows")
        self.refuse("--impl", "openssl,", "names that --list shows")
        self.refuse("--impl", "openssl:", "openssl:[PROVIDER")

    def test_algo(self):
        self.refuse("--algo", "aes-512-cbc", "names such as")
        self.refuse("--algo", "aes-128-cbc,,sha1", "names such as")
        self.refuse("--algo", "AES-128-CBC", "names such as")

    def test_sizes(self):
        for value in ("0", "x", "", "16,", "-16", "1.5k", "65m", "99999999999999999999", "4..2", "16..", "..16", "16...32",
                      "0..16", "4KB", "iB"):
            with self.subTest(value):
                self.refuse("--sizes", value, "size" if value else "a value")
        self.refuse("--sizes", ",".join(map(str, range(1, 40))), "at most 32 sizes")

    def test_sizes_that_fit_nothing(self):
        done = self.sweep("--algo", "aes-128-cbc", "--sizes", "17,24", code=2)
        self.assertEqual(done.stderr, "sallyport crypto sweep: --sizes: expected a size that fits aes-128-cbc (aes-128-cbc "
                                      "takes multiples of 16 bytes), got '17,24'\n")

    def test_mode(self):
        for value in ("double", "single:1", "concurrent:0", "concurrent:", "concurrent:1025", "depth", "depth:0", "depth:x",
                      "depth:1025"):
            with self.subTest(value):
                self.refuse("--mode", value, "single, concurrent")

    def test_numbers(self):
        for option in ("--rounds", "--slice", "--seconds"):
            for value in ("0", "x", "-1", "1.5", "99999999"):
                with self.subTest(option + " " + value):
                    self.refuse(option, value, "a number from 1 to ")

    def test_words(self):
        for words in (["--sise", "16"], ["16"], ["--quiet=yes"]):
            done = self.sweep(*words, code=2)
            self.assertIn("unknown argument '%s'; see --help" % words[0], done.stderr)
        done = self.sweep("--sizes", code=2)
        self.assertIn("--sizes: expected a value", done.stderr)
        done = self.sweep("--rounds", code=2)
        self.assertIn("--rounds: expected a number", done.stderr)
        done = self.sweep("--slice", 5, "--seconds", 5, code=2)
        self.assertIn("--seconds: expected without --slice", done.stderr)

    def test_files(self):
        for option in ("--csv", "--json", "--html"):
            self.refuse(option, self.path("nowhere/t"), "a file to write")
            self.refuse(option, self.folder, "a file to write")
        self.refuse("--compare-with", self.path("nowhere"), "a table to read")
        self.refuse("--compare-with", self.folder, "a table to read")

    def test_bad_table(self):
        path = self.path("bad.csv")
        for text in ("", "algorithm,mode\n", "request_bytes,single_x_bytes_per_s\n16,many\n", "\0\0\0\0"):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            done = self.sweep("--compare-with", path, code=2)
            self.assertTrue(done.stderr.startswith("sallyport crypto sweep: --compare-with: "), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_subcommand(self):
        done = subprocess.run([SALLYPORT, "crypto", "swep"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected asym or sweep", done.stderr)


if __name__ == "__main__":
    unittest.main()

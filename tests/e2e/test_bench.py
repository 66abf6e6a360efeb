"""
`sallyport bench` against servers whose faults are known: what it says is what was injected.
"""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time
import unittest

import harness
from harness import SALLYPORT, Case, free_port, listening_ports, require, serve_hello, wait_until

LATENCY_FIELDS = {"count", "min", "mean", "stddev", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"}
TOP_FIELDS = {
    "tool", "version", "url", "urls", "loop", "connections", "threads", "keepalive", "rate_asked", "requests", "sent",
    "errors", "duration_s", "rate", "latency_us", "service_us", "first_byte_us", "connect_us", "handshake_full_us",
    "handshake_resumed_us", "handshakes_full", "handshakes_resumed", "connects", "reconnects", "bytes_in", "bytes_out",
    "body_bytes", "bytes_in_per_s", "status", "error_counts", "error_examples", "client", "interrupted",
}


class BenchCase(Case):
    def bench(self, *arguments, status=0, seconds=60, **options):
        """The finished process; its exit status is checked."""
        done = subprocess.run(
            [SALLYPORT, "bench", *[str(word) for word in arguments]], capture_output=True, text=True, check=False,
            timeout=seconds, env=dict(os.environ, **harness.sanitizer_environment()), **options)
        text = done.stdout + done.stderr
        for mark in ("Sanitizer", "runtime error:"):
            self.assertNotIn(mark, text)
        self.assertEqual(done.returncode, status, text)
        return done

    def bench_json(self, *arguments, status=0, **options):
        done = self.bench("--json", *arguments, status=status, **options)
        result = json.loads(done.stdout)
        self.assertLessEqual(TOP_FIELDS, set(result))
        for name in ("latency_us", "service_us", "first_byte_us", "connect_us", "handshake_full_us"):
            self.assertEqual(set(result[name]), LATENCY_FIELDS)
        self.assertEqual(result["errors"], sum(result["error_counts"].values()))
        return result

    def url(self, server, path="/hello", scheme="http"):
        return "%s://127.0.0.1:%d%s" % (scheme, server.port, path)

    def only_error(self, result, name):
        """The count of the one kind of error that there was."""
        counts = {key: count for key, count in result["error_counts"].items() if count}
        self.assertEqual(set(counts), {name}, result["error_examples"])
        self.assertIn(name, result["error_examples"])
        return counts[name]


class RealServer(BenchCase):
    def test_counts_are_exact(self):
        nginx = self.nginx()
        result = self.bench_json("-n", 500, "-c", 5, "-k", self.url(nginx))
        self.assertEqual(result["requests"], 500)
        self.assertEqual(result["sent"], 500)
        self.assertEqual(result["errors"], 0)
        self.assertEqual(result["status"]["2xx"], 500)
        self.assertEqual(result["body_bytes"], 500 * len("hello\n"))
        self.assertEqual(result["connects"], 5)
        self.assertEqual(result["latency_us"]["count"], 500)
        self.assertEqual(result["loop"], "closed")
        self.assertAlmostEqual(result["rate"], 500 / result["duration_s"], delta=result["rate"] / 100)

    def test_a_connection_a_request(self):
        nginx = self.nginx()
        result = self.bench_json("-n", 60, "-c", 3, "--close", self.url(nginx))
        self.assertEqual(result["connects"], 60)
        self.assertEqual(result["connect_us"]["count"], 60)
        self.assertFalse(result["keepalive"])

    def test_duration_and_threads(self):
        nginx = self.nginx()
        result = self.bench_json("-t2", "-c4", "-d1s", "--latency", "--interval", "200ms", self.url(nginx))
        self.assertAlmostEqual(result["duration_s"], 1, delta=0.5)
        self.assertEqual(result["threads"], 2)
        self.assertGreater(len(result["intervals"]), 2)
        self.assertEqual(sum(v["requests"] for v in result["intervals"]), result["requests"])

    def test_open_loop_keeps_its_rate(self):
        nginx = self.nginx()
        result = self.bench_json("-d", "2s", "--rate", "200", "--arrivals", "constant", self.url(nginx))
        self.assertEqual(result["loop"], "open")
        self.assertEqual(result["rate_asked"], 200)
        self.assertAlmostEqual(result["requests"], 400, delta=8)
        self.assertEqual(result["errors"], 0)

    def test_poisson_arrivals(self):
        nginx = self.nginx()
        result = self.bench_json("-d", "2s", "--rate", "200", self.url(nginx))
        # Four standard deviations.
        self.assertAlmostEqual(result["requests"], 400, delta=80)

    def test_method_body_and_headers(self):
        seen = []

        def handler(connection):
            while True:
                seen.append(connection.request())
                connection.answer(b"ok")

        server = self.server(handler)
        path = self.write("body", "from a file")
        self.bench("-n", 1, "-c", 1, "-p", path, "-T", "application/x-test", "-H", "X-One: 1", "-A", "user:pass",
                   self.url(server, "/p?q=1"))
        self.bench("-n", 1, "-c", 1, "-m", "PUT", "-b", "text", "-H", "Host: other", self.url(server))
        head, body = seen[0]
        self.assertTrue(head.startswith(b"POST /p?q=1 HTTP/1.1\r\n"))
        self.assertIn(b"Content-Type: application/x-test\r\n", head)
        self.assertIn(b"X-One: 1\r\n", head)
        self.assertIn(b"Authorization: Basic dXNlcjpwYXNz\r\n", head)
        self.assertIn(b"Host: 127.0.0.1:%d\r\n" % server.port, head)
        self.assertEqual(body, b"from a file")
        head, body = seen[1]
        self.assertTrue(head.startswith(b"PUT /hello HTTP/1.1\r\n"))
        self.assertEqual(head.lower().count(b"\nhost:"), 1)
        self.assertIn(b"Host: other\r\n", head)
        self.assertEqual(body, b"text")

    def test_file_of_requests(self):
        seen = []

        def handler(connection):
            while True:
                head, _ = connection.request()
                seen.append(head.split(b" HTTP")[0])
                connection.answer(b"" if head.startswith(b"HEAD") else b"ok")

        server = self.server(handler)
        urls = self.write("urls", "# three\n%s\nHEAD %s\n\nDELETE %s\n" % (
            self.url(server, "/a"), self.url(server, "/b"), self.url(server, "/c")))
        self.bench("-n", 6, "-c", 1, "--urls", urls)
        self.assertEqual(seen, [b"GET /a", b"HEAD /b", b"DELETE /c"] * 2)
        bad = self.write("bad", "%s\nGET\n" % self.url(server))
        self.assertIn("line 2", self.bench("-n", 1, "--urls", bad, status=2).stderr)

    def test_cost_of_the_server(self):
        nginx = self.nginx()
        result = self.bench_json("-d", "1s", "-c", 4, "--server-pid", nginx.pid, self.url(nginx))
        self.assertEqual(result["server"]["pid"], nginx.pid)
        self.assertGreater(result["server"]["cpu_s"], 0.02)
        self.assertGreater(result["server"]["cpu_us_a_request"], 0)
        self.assertGreater(result["server"]["rss_max_kib"], 1000)
        self.bench("-n", 1, "--server-pid", 2**22 + 1, self.url(nginx), status=1)

    def test_find_limit(self):
        nginx = self.nginx()
        done = self.bench("--find-limit", "--p99", "500ms", "-d", "300ms", "-c", 10, "--json", self.url(nginx))
        limit = json.loads(done.stdout)["find_limit"]
        self.assertGreater(limit["rate"], 100)
        self.assertLessEqual(limit["p99_us"], 500000)
        self.bench("--find-limit", "--p99", "1us", "-d", "200ms", self.url(nginx), status=1)

    def test_hold(self):
        port = free_port()
        # Only with two or more "threads" does it answer properly.
        script = self.write("server.py", """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if int(sys.argv[2]) < 2:
            self.connection.close()
            return
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer.request_queue_size = 64
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""")
        done = self.bench("--hold", 20, "--sweep", "threads=1..3", "exec python3 %s %d {threads}" % (script, port),
                          "--close", "-d", "1s", "http://127.0.0.1:%d/" % port)
        self.assertIn("fewest: threads=2", done.stdout)
        self.assertNotIn(port, listening_ports())
        done = self.bench("--hold", 20, "--sweep", "threads=1..1", "exit {threads}", "--close",
                          "http://127.0.0.1:%d/" % port, status=1)
        self.assertIn("ended before its port answered", done.stderr)


class Formats(BenchCase):
    """What scripts that read the other tools' output look for."""

    def test_ab(self):
        nginx = self.nginx()
        text = self.bench("--format", "ab", "-n", 100, "-c", 2, self.url(nginx)).stdout
        self.assertEqual(int(re.search(r"^Complete requests:\s+(\d+)$", text, re.M).group(1)), 100)
        self.assertEqual(int(re.search(r"^Failed requests:\s+(\d+)$", text, re.M).group(1)), 0)
        rate = float(re.search(r"^Requests per second:\s+([\d.]+) \[#/sec\] \(mean\)$", text, re.M).group(1))
        taken = float(re.search(r"^Time taken for tests:\s+([\d.]+) seconds$", text, re.M).group(1))
        self.assertAlmostEqual(rate, 100 / taken, delta=rate * 0.2)
        self.assertEqual(len(re.findall(r"^Time per request:\s+[\d.]+ \[ms\] \(mean", text, re.M)), 2)
        self.assertRegex(text, r"(?m)^Concurrency Level:\s+2$")
        self.assertRegex(text, r"(?m)^Document Length:\s+6 bytes$")
        self.assertRegex(text, r"(?m)^Transfer rate:\s+[\d.]+ \[Kbytes/sec\] received$")
        for name in ("Connect", "Processing", "Waiting", "Total"):
            self.assertRegex(text, r"(?m)^%s:\s+\d+\s+\d+\s+[\d.]+\s+\d+\s+\d+$" % name)
        for percent in (50, 66, 75, 80, 90, 95, 98, 99, 100):
            self.assertRegex(text, r"(?m)^\s*%d%%\s+\d+" % percent)

    def test_wrk(self):
        nginx = self.nginx()
        text = self.bench("--format", "wrk", "-t2", "-c4", "-d1s", "--latency", self.url(nginx)).stdout
        self.assertRegex(text, r"(?m)^Running 1s test @ http://127.0.0.1:\d+/hello$")
        self.assertRegex(text, r"(?m)^  2 threads and 4 connections$")
        self.assertRegex(text, r"(?m)^    Latency\s+[\d.]+(us|ms|s)\s+[\d.]+(us|ms|s)\s+[\d.]+(us|ms|s)\s+[\d.]+%$")
        self.assertRegex(text, r"(?m)^    Req/Sec\s+[\d.]+k?\s+[\d.]+k?\s+[\d.]+k?\s+[\d.]+%$")
        self.assertIn("Latency Distribution", text)
        for percent in (50, 75, 90, 99):
            self.assertRegex(text, r"(?m)^\s+%d%%\s+[\d.]+(us|ms|s)$" % percent)
        count = int(re.search(r"^\s+(\d+) requests in [\d.]+m?s, [\d.]+[KMG]?B read$", text, re.M).group(1))
        rate = float(re.search(r"^Requests/sec:\s+([\d.]+)$", text, re.M).group(1))
        self.assertAlmostEqual(rate, count, delta=count * 0.5)
        self.assertRegex(text, r"(?m)^Transfer/sec:\s+[\d.]+[KMG]?B$")

    def test_epwget(self):
        nginx = self.nginx()
        text = self.bench("--format", "epwget", "-n", 50, "--close", self.url(nginx)).stdout
        found = re.search(r"\[ ALL \] connect:\s+(\d+), read:\s+(\d+) MB, write:\s+(\d+) MB, completes:\s+(\d+) "
                          r"\(resp_time avg:\s+(\d+), max:\s+(\d+) us\)", text)
        self.assertTrue(found, text)
        self.assertRegex(text, r"Completed 50 connections, errors: 0 incompletes: 0")

    def test_default_labels_the_loop(self):
        nginx = self.nginx()
        text = self.bench("-n", 20, self.url(nginx)).stdout
        self.assertIn("closed loop: a stall of the server hides requests that were never sent", text)
        text = self.bench("-n", 20, "--rate", 500, self.url(nginx)).stdout
        self.assertIn("total, from due", text)
        self.assertIn("total, from sent", text)

    def test_csv(self):
        nginx = self.nginx()
        path = self.path("series.csv")
        self.bench("-d", "1s", "--interval", "100ms", "--csv", path, self.url(nginx))
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], "start_s,requests,errors,p50_us,p99_us,max_us,bytes_in")
        self.assertGreater(len(lines), 5)
        self.assertTrue(all(len(line.split(",")) == 7 for line in lines))
        self.bench("-n", 1, "--csv", self.path("no/such/folder"), self.url(nginx), status=2)

    def test_no_progress_in_a_pipe(self):
        nginx = self.nginx()
        self.assertEqual(self.bench("-d", "1s", self.url(nginx)).stderr, "")

    def test_html(self):
        nginx = self.nginx()
        path = self.path("report.html")
        self.bench("-d", "1s", "-c", 4, "--html", path, self.url(nginx, "/hello?a=%3Cb%3E&c='d'"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("<script", text)
        self.assertNotRegex(text, r"(?:src|href)=")
        self.assertGreaterEqual(text.count("<svg "), 3)
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        if not chromium:
            self.skipTest("chromium is not installed: the page was not opened")
        base = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + self.path("chromium")]
        dom = harness.run(*base, "--dump-dom", "file://" + path)
        self.assertGreaterEqual(dom.count("<svg "), 3)
        for title in ("Latency by percentile", "Histogram", "Throughput and errors"):
            self.assertIn(title, dom)
        picture = self.path("report.png")
        harness.run(*base, "--window-size=860,2400", "--screenshot=" + picture, "file://" + path)
        self.assertGreater(os.path.getsize(picture), 20000)


class Faults(BenchCase):
    def test_delay(self):
        def handler(connection):
            while True:
                connection.request()
                time.sleep(0.05)
                connection.answer(b"late")

        result = self.bench_json("-n", 40, "-c", 4, self.url(self.server(handler)))
        latency = result["latency_us"]
        self.assertEqual(result["requests"], 40)
        self.assertGreaterEqual(latency["min"], 50000)
        self.assertLess(latency["p50"], 60000)
        self.assertGreaterEqual(result["first_byte_us"]["min"], 50000)

    def stall_server(self):
        """Stalls all its connections for 200 ms, once, when it has answered for a while."""
        lock = threading.Lock()
        count = [0]

        def handler(connection):
            while True:
                connection.request()
                with lock:
                    count[0] += 1
                    if count[0] == 100:
                        time.sleep(0.2)
                connection.answer(b"ok")

        return self.server(handler)

    def test_open_loop_shows_a_stall(self):
        result = self.bench_json("--rate", 200, "--arrivals", "constant", "-d", "2s", "-c", 2,
                                 self.url(self.stall_server()))
        self.assertEqual(result["errors"], 0)
        # 40 of 400 requests fell due during the stall, and waited for 200 to 0 ms.
        self.assertGreater(result["latency_us"]["max"], 190000)
        self.assertGreater(result["latency_us"]["p95"], 50000)
        # Only the two that had been sent saw it.
        self.assertLess(result["service_us"]["p95"], 50000)
        self.assertGreater(result["service_us"]["max"], 190000)

    def test_closed_loop_hides_it(self):
        result = self.bench_json("-n", 1000, "-c", 2, self.url(self.stall_server()))
        self.assertGreater(result["latency_us"]["max"], 190000)
        self.assertLess(result["latency_us"]["p99"], 100000)

    def test_reset(self):
        def handler(connection):
            for _ in range(5):
                connection.request()
                connection.answer(b"ok")
            connection.request()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
            time.sleep(0.02)  # so that it is read before the reset takes it away
            connection.reset()

        result = self.bench_json("-n", 60, "-c", 1, self.url(self.server(handler)), status=1)
        self.assertEqual(self.only_error(result, "reset"), 10)
        self.assertEqual(result["requests"], 50)

    def test_reset_of_idle_connections_is_no_error(self):
        def handler(connection):
            for _ in range(5):
                connection.request()
                connection.answer(b"ok")
            connection.reset()

        result = self.bench_json("-n", 50, "-c", 1, self.url(self.server(handler)))
        self.assertEqual(result["requests"], 50)
        self.assertGreater(result["reconnects"], 0)

    def test_reset_of_the_first_request(self):
        def handler(connection):
            connection.request()
            connection.reset()

        result = self.bench_json("-n", 5, "-c", 1, self.url(self.server(handler)), status=1)
        self.assertEqual(self.only_error(result, "reset"), 5)

    def test_truncated(self):
        def handler(connection):
            connection.request()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")

        result = self.bench_json("-n", 5, "-c", 1, self.url(self.server(handler)), status=1)
        self.assertEqual(self.only_error(result, "closed"), 5)
        self.assertEqual(result["requests"], 0)

    def test_no_http(self):
        def handler(connection):
            connection.request()
            connection.send(b"SSH-2.0-test\r\n\r\n")

        result = self.bench_json("-n", 3, "-c", 1, self.url(self.server(handler)), status=1)
        self.assertEqual(self.only_error(result, "http"), 3)

    def test_expectations(self):
        count = [0]

        def handler(connection):
            while True:
                connection.request()
                count[0] += 1
                if count[0] % 4 == 0:
                    connection.answer(b"error page", status="500 Oops")
                elif count[0] % 4 == 1:
                    connection.answer(b"hellO\n")
                else:
                    connection.answer(b"hello\n")

        url = self.url(self.server(handler))
        result = self.bench_json("-n", 40, "-c", 1, url)
        self.assertEqual(result["status"]["5xx"], 10)
        self.assertEqual(result["errors"], 0)
        result = self.bench_json("-n", 40, "-c", 1, "--expect-status", 200, url, status=1)
        self.assertEqual(self.only_error(result, "status"), 10)
        self.assertEqual(result["requests"], 40)
        result = self.bench_json("-n", 40, "-c", 1, "--expect-size", 6, url, status=1)
        self.assertEqual(self.only_error(result, "size"), 10)
        count[0] = 1  # the sample is a good one
        result = self.bench_json("-n", 40, "-c", 1, "--expect-same", url, status=1)
        self.assertEqual(self.only_error(result, "hash"), 20)

    def test_refused(self):
        result = self.bench_json("-n", 5, "-c", 1, "http://127.0.0.1:%d/" % free_port(), status=1)
        self.only_error(result, "refused")
        self.assertEqual(result["requests"], 0)

    def test_first_byte_never_comes(self):
        def handler(connection):
            connection.request()
            time.sleep(3)

        result = self.bench_json("-n", 2, "-c", 2, "-s", "300ms", self.url(self.server(handler)), status=1)
        self.assertEqual(self.only_error(result, "timeout_first_byte"), 2)

    def test_server_stops_half_way(self):
        nginx = self.nginx()
        threading.Timer(0.7, nginx.kill).start()
        result = self.bench_json("-d", "2s", "-c", 4, self.url(nginx), status=1)
        self.assertGreater(result["requests"], 100)
        self.assertGreater(result["errors"], 0)
        self.assertGreater(result["error_counts"]["refused"], 0)

    def test_interrupted(self):
        nginx = self.nginx()
        child = subprocess.Popen([SALLYPORT, "bench", "--json", "-d", "60s", self.url(nginx)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 env=dict(os.environ, **harness.sanitizer_environment()))
        self.addCleanup(child.kill)
        wait_until(lambda: harness.signal_is_handled(child.pid, signal.SIGINT), "the signal handler")
        time.sleep(0.5)  # some requests
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=20)
        self.assertEqual(child.returncode, 130, errors)
        result = json.loads(out)
        self.assertTrue(result["interrupted"])
        self.assertGreater(result["requests"], 10)
        self.assertLess(result["duration_s"], 20)


class Tls(BenchCase):
    def tls_server(self, authority):
        """Answers over TLS; its certificate is for 127.0.0.1."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.issue("server.pem", "127.0.0.1", ["127.0.0.1"]))

        def handler(connection):
            connection.sock = context.wrap_socket(connection.sock, server_side=True)
            serve_hello(connection)

        return self.server(handler)

    def test_verified(self):
        authority = harness.Authority(self.path("ca"))
        url = self.url(self.tls_server(authority), scheme="https")
        result = self.bench_json("-n", 20, "-c", 2, "--cafile", authority.ca, "--tls", "1.3", url)
        self.assertEqual(result["requests"], 20)
        self.assertEqual(result["handshakes_full"], 2)
        self.assertEqual(result["handshake_full_us"]["count"], 2)
        self.assertEqual(result["tls"]["version"], "TLSv1.3")
        result = self.bench_json("-n", 5, "-c", 1, "--insecure", "--tls", "1.2", "--ciphers",
                                 "ECDHE-ECDSA-AES256-GCM-SHA384:TLS_AES_128_GCM_SHA256", url)
        self.assertEqual(result["tls"], {"version": "TLSv1.2", "cipher": "ECDHE-ECDSA-AES256-GCM-SHA384"})
        result = self.bench_json("-n", 6, "-c", 1, "--insecure", "--expect-same", url)
        self.assertEqual(result["errors"], 0)

    def test_certificate_refused(self):
        url = self.url(self.tls_server(harness.Authority(self.path("ca"))), scheme="https")
        other = harness.Authority(self.path("other"), "Other CA")
        result = self.bench_json("-n", 3, "-c", 1, "--cafile", other.ca, url, status=1)
        self.only_error(result, "tls")
        self.assertRegex(result["error_examples"]["tls"], "(?i)certificate")

    def test_resumed_and_handshake_only(self):
        authority = harness.Authority(self.path("ca"))
        nginx = self.nginx(extra="listen 127.0.0.1:@ ssl; ".replace("@", str(self.tls_port())) +
                           "ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate %(pem)s; ssl_certificate_key %(pem)s;" % {
                               "pem": authority.issue("nginx.pem", "127.0.0.1", ["127.0.0.1"])})
        self.assertTrue(nginx.is_running())
        url = "https://127.0.0.1:%d/hello" % self.tls_port()
        for version in ("1.2", "1.3"):
            result = self.bench_json("-n", 100, "-c", 2, "--close", "--resume", 1, "--tls", version, "--cafile",
                                     authority.ca, url)
            self.assertEqual(result["handshakes_full"] + result["handshakes_resumed"], 100)
            self.assertGreaterEqual(result["handshakes_resumed"], 90)
        result = self.bench_json("-n", 50, "-c", 2, "--handshake-only", "--cafile", authority.ca, url)
        self.assertEqual(result["requests"], 50)
        self.assertEqual(result["handshakes_full"], 50)
        self.assertEqual(result["body_bytes"], 0)

    def test_client_certificate(self):
        authority = harness.Authority(self.path("ca"))
        server = authority.issue("server.pem", "127.0.0.1", ["127.0.0.1"])
        both = authority.issue("client.pem", "client")
        with open(both, encoding="ascii") as file:
            text = file.read()
        cut = text.index("-----BEGIN PRIVATE KEY")
        certificate, key = self.write("client.crt", text[:cut].rstrip()), self.write("client.key", text[cut:])
        self.nginx(extra="listen 127.0.0.1:%d ssl; ssl_certificate %s; ssl_certificate_key %s; "
                   "ssl_client_certificate %s; ssl_verify_client on;" % (self.tls_port(), server, server, authority.ca))
        words = ["-n", 4, "-c", 2, "--expect-status", 200, "--cafile", authority.ca,
                 "https://127.0.0.1:%d/hello" % self.tls_port()]
        self.bench("--cert", both, *words)
        self.bench("--cert", certificate, "--key", key, *words)
        result = self.bench_json(*words, status=1)
        self.assertEqual(self.only_error(result, "status"), 4)
        self.assertIn("--key", self.bench("--cert", certificate, "--key", "/no/such/file", *words, status=2).stderr)

    def tls_port(self):
        self.port = getattr(self, "port", None) or free_port()
        return self.port


class InMemory(BenchCase):
    def test_handshakes(self):
        done = self.bench("tls", "--key", "rsa2048,p256", "--tls", "1.3", "--count", 8, "--in-flight", 4, "--json")
        results = json.loads(done.stdout)["results"]
        self.assertEqual({r["key"] for r in results}, {"rsa2048", "p256"})
        for result in results:
            self.assertEqual(result["handshakes"], 8)
            self.assertGreater(result["server_us"], 0)
            self.assertGreater(result["client_us"], 0)
        self.assertIn("--key", self.bench("tls", "--key", "dsa", status=2).stderr)


class BadInput(BenchCase):
    def refuses(self, *arguments, says):
        done = self.bench(*arguments, status=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def test_arguments(self):
        self.refuses(says="URL")
        self.refuses("127.0.0.1:80", says="http://HOST")
        self.refuses("http://127.0.0.1:99999/", says="port")
        self.refuses("-c", "none", "http://h/", says="-c: expected a number")
        self.refuses("-t", "10s", "http://h/", says="--time-limit")
        self.refuses("--conections", "3", "http://h/", says="--connections")
        self.refuses("-p", self.path("missing"), "http://127.0.0.1/", says="-p")
        self.refuses("--cafile", self.path("missing"), "https://127.0.0.1/", says="--cafile")
        self.refuses("--handshake-only", "http://127.0.0.1/", says="https")
        self.refuses("--ciphers", "NONSENSE", "--insecure", "https://127.0.0.1/", says="NONSENSE")

    def test_help(self):
        text = self.bench("--help").stdout
        for word in ("--rate", "wrk", "ab -t", "--time-limit", "--find-limit", "--resume"):
            self.assertIn(word, text)

    def test_unknown_host(self):
        done = self.bench("-n", 1, "http://no-such-host.invalid/", status=1)
        self.assertIn("no-such-host.invalid", done.stderr)

    def test_too_few_descriptors(self):
        def limit(soft, hard):
            return lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NOFILE, (soft, hard))

        nginx = self.nginx()
        # The soft limit is raised without a word.
        result = self.bench_json("-n", 300, "-c", 300, self.url(nginx), preexec_fn=limit(100, 2000))
        self.assertEqual(result["requests"], 300)
        if os.geteuid() == 0:
            require("setpriv")
            command = ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]
        else:
            command = []
        done = subprocess.run(
            [*command, SALLYPORT, "bench", "-n", "300", "-c", "300", self.url(nginx)], capture_output=True, text=True,
            check=False, preexec_fn=limit(100, 200), timeout=60,
            env=dict(os.environ, **harness.sanitizer_environment()))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ulimit -n", done.stderr)
        self.assertIn("-c", done.stderr)


if __name__ == "__main__":
    unittest.main()

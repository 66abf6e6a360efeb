#!/usr/bin/env python3
"""
End-to-end tests of `sallyport origin`, with curl and raw sockets.

SALLYPORT names the binary (default build/sallyport).
"""

import email.utils
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SALLYPORT = os.environ.get(
    "SALLYPORT", os.path.join(os.path.dirname(__file__), "..", "..", "build", "sallyport")
)


# A client that never stops asking, and reads all that it gets.
GREEDY = """
import socket, sys, threading
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def read():
    while s.recv(1 << 20):
        pass
threading.Thread(target=read, daemon=True).start()
while True:
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" * 2000)
"""


class Origin:
    """A running server; `url` and `address` tell where."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [SALLYPORT, "origin", "--listen", "127.0.0.1:0", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.line)
        if not found:
            raise AssertionError(self.line + self.process.communicate()[1])
        self.port = int(found.group(1))
        self.address = ("127.0.0.1", self.port)
        self.url = "http://127.0.0.1:%d" % self.port

    def stop(self, number=signal.SIGTERM):
        """Exit status, and everything that was printed after the line."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out + err

    def connect(self):
        return socket.create_connection(self.address, timeout=20)

    def raw(self, data):
        """All that comes back for `data` until the server closes."""
        with self.connect() as s:
            s.sendall(data)
            return read_all(s)


def read_all(s):
    parts = []
    while True:
        try:
            part = s.recv(1 << 16)
        except ConnectionResetError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def curl(*arguments, check=True):
    return subprocess.run(
        ["curl", "-sS", "--max-time", "30", *arguments], capture_output=True, check=check
    ).stdout


def head_of(*arguments):
    """Status and fields (lower-case names) of the last response that curl gets."""
    text = curl("-D", "-", "-o", "/dev/null", *arguments).decode("latin-1")
    lines = text.strip().split("\r\n\r\n")[-1].split("\r\n")
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(": ")
        fields[name.lower()] = value
    return int(lines[0].split()[1]), fields


def pattern(size):
    line = bytes(0x30 + i for i in range(63)) + b"\n"
    return (line * (size // 64 + 1))[:size]


class ServerTest(unittest.TestCase):
    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.origin = Origin(*cls.arguments)

    @classmethod
    def tearDownClass(cls):
        status, text = cls.origin.stop()
        assert status == 0 and text == "", (status, text)


class Synthetic(ServerTest):
    arguments = ("--threads", "2")

    def test_line(self):
        self.assertIn("64 bytes", self.origin.line)
        self.assertIn("2 threads", self.origin.line)

    def test_default_size(self):
        self.assertEqual(curl(self.origin.url + "/any/thing?x=1"), pattern(64))
        status, fields = head_of(self.origin.url)
        self.assertEqual((status, fields["content-length"]), (200, "64"))
        now = email.utils.parsedate_to_datetime(fields["date"]).timestamp()
        self.assertLess(abs(now - time.time()), 3)

    def test_sizes(self):
        for size in (0, 1, 63, 65, 4096, 15000, 16384, 70000, 1 << 20, (10 << 20) + 7):
            got = curl("%s/size/%d" % (self.origin.url, size))
            self.assertEqual(len(got), size)
            self.assertEqual(got, pattern(size))

    def test_bad_sizes(self):
        for path in ("/size/", "/size/x", "/size/-1", "/size/1x", "/size/99999999999999999999"):
            self.assertEqual(head_of(self.origin.url + path)[0], 404, path)

    def test_head(self):
        status, fields = head_of("-I", self.origin.url + "/size/123456")
        self.assertEqual((status, fields["content-length"]), (200, "123456"))
        answer = self.origin.raw(b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertTrue(answer.endswith(b"\r\n\r\n"))

    def test_post(self):
        for size in (0, 1, 1000, 100000, 5000000):
            with tempfile.NamedTemporaryFile() as f:
                f.write(os.urandom(size))
                f.flush()
                for more in ((), ("-H", "Transfer-Encoding: chunked"), ("-H", "Expect:")):
                    status, fields = head_of("--data-binary", "@" + f.name, *more, self.origin.url)
                    self.assertEqual(status, 200)
                    self.assertEqual(fields.get("x-received-bytes", "0"), str(size))

    def test_continue(self):
        with self.origin.connect() as s:
            s.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                      b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
            self.assertEqual(s.recv(1000), b"HTTP/1.1 100 Continue\r\n\r\n")
            s.sendall(b"abc")
            answer = read_all(s)
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertIn(b"X-Received-Bytes: 3\r\n", answer)

    def test_other_methods(self):
        for method in ("PUT", "DELETE", "TRACE", "PATCH", "BREW"):
            status, fields = head_of("-X", method, self.origin.url)
            self.assertEqual((status, fields["allow"]), (405, "GET, HEAD, POST, OPTIONS"))
        answer = self.origin.raw(b"OPTIONS / HTTP/1.0\r\n\r\n")  # as HAProxy's health checks
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertIn(b"\r\nAllow: GET, HEAD, POST, OPTIONS\r\n", answer)
        answer = self.origin.raw(b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"))
        answer = self.origin.raw(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789")
        self.assertTrue(answer.startswith(b"HTTP/1.1 405 "))
        self.assertIn(b"\r\nConnection: close\r\n", answer)

    def test_pipelining(self):
        count = 500
        requests = b"GET /size/10 HTTP/1.1\r\nHost: a\r\n\r\n" * count
        answer = self.origin.raw(requests + b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK\r\n"), count + 1)
        self.assertEqual(answer.count(b"\r\n\r\n" + pattern(10)), count + 1)

    def test_pipelined_bodies(self):
        one = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n01234"
        two = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        big = b"GET /size/100000 HTTP/1.1\r\nHost: a\r\n\r\n"
        last = b"GET / HTTP/1.0\r\n\r\n"
        answer = self.origin.raw((one + two + big) * 20 + last)
        self.assertEqual(answer.count(b"X-Received-Bytes: 5\r\n"), 20)
        self.assertEqual(answer.count(b"X-Received-Bytes: 3\r\n"), 20)
        self.assertEqual(answer.count(pattern(100000)), 20)

    def test_byte_by_byte(self):
        request = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        with self.origin.connect() as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(len(request)):
                s.sendall(request[i:i + 1])
                time.sleep(0.001)
            answer = read_all(s)
        self.assertIn(b"X-Received-Bytes: 4\r\n", answer)

    def test_http_1_0(self):
        answer = self.origin.raw(b"GET / HTTP/1.0\r\n\r\n")
        self.assertIn(b"\r\nConnection: close\r\n", answer)
        with self.origin.connect() as s:
            for _ in range(3):
                s.sendall(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                answer = s.recv(65536)
                self.assertIn(b"\r\nConnection: keep-alive\r\n", answer)

    def test_keep_alive(self):
        urls = [self.origin.url + "/size/%d" % n for n in (1, 2, 3, 100000, 5)]
        out = curl("-w", "%{num_connects}\n", *sum((["-o", "/dev/null", u] for u in urls), []))
        self.assertEqual(out.split(), [b"1", b"0", b"0", b"0", b"0"])

    def test_absolute_target(self):
        answer = self.origin.raw(
            b"GET http://a/size/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertTrue(answer.endswith(b"\r\n\r\n" + pattern(7)))

    def test_bad_requests(self):
        for data, status in (
            (b"nonsense\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\n\r\n", b"400"),  # no Host
            (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100000 + b"\r\n\r\n", b"431"),
            (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        ):
            answer = self.origin.raw(data)
            self.assertEqual(answer[:12], b"HTTP/1.1 " + status, data[:60])
            self.assertIn(b"\r\nConnection: close\r\n", answer)

    def test_half_close(self):
        with self.origin.connect() as s:
            s.sendall(b"GET /size/3000000 HTTP/1.1\r\nHost: a\r\n\r\n")
            s.shutdown(socket.SHUT_WR)
            self.assertTrue(read_all(s).endswith(pattern(3000000)))

    def test_slow_reader(self):
        with self.origin.connect() as s:
            s.sendall(b"GET /size/30000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            time.sleep(0.3)
            self.assertEqual(read_all(s).split(b"\r\n\r\n", 1)[1], pattern(30000000))

    def test_clients_that_vanish(self):
        for _ in range(50):
            s = self.origin.connect()
            s.sendall(b"GET /size/100000000 HTTP/1.1\r\nHost: a\r\n\r\n")
            s.recv(10)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
        self.assertEqual(len(curl(self.origin.url)), 64)

    def test_many_clients_at_once(self):
        sockets = [self.origin.connect() for _ in range(300)]
        for s in sockets:
            s.sendall(b"GET /size/50000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        for s in sockets:
            self.assertTrue(read_all(s).endswith(b"\r\n\r\n" + pattern(50000)))
            s.close()

    def test_a_greedy_client_starves_nobody(self):
        greedy = [
            subprocess.Popen([sys.executable, "-c", GREEDY, str(self.origin.port)]) for _ in range(3)
        ]
        try:
            time.sleep(0.5)
            for _ in range(10):
                started = time.time()
                answer = self.origin.raw(b"GET / HTTP/1.0\r\n\r\n")
                self.assertTrue(answer.endswith(pattern(64)))
                self.assertLess(time.time() - started, 5)
        finally:
            for process in greedy:
                process.kill()
                process.wait()


class Files(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp()
        cls.site = os.path.join(cls.root, "site")
        cls.big = os.urandom(3000000)
        cls.small = b"0123456789" * 10
        for name, content in (
            ("site/index.html", b"<h1>index</h1>"),
            ("site/small.txt", cls.small),
            ("site/big.bin", cls.big),
            ("site/empty.css", b""),
            ("site/UPPER.PNG", b"png"),
            ("site/none", b"none"),
            ("site/with space & <x>.txt", b"odd"),
            ("site/sub/page.html", b"page"),
            ("site/sub/a%20b.json", b"{}"),
            ("site/locked", b"secret"),
            ("outside.txt", b"outside"),
        ):
            path = os.path.join(cls.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(content)
        os.utime(os.path.join(cls.site, "small.txt"), (1e9, 1e9))
        os.symlink("small.txt", os.path.join(cls.site, "inside-link.txt"))
        os.symlink("../outside.txt", os.path.join(cls.site, "outside-link.txt"))
        os.symlink(os.path.join(cls.root, "outside.txt"), os.path.join(cls.site, "absolute-link.txt"))
        os.symlink("..", os.path.join(cls.site, "up"))
        os.symlink("sub", os.path.join(cls.site, "sub-link"))
        os.mkfifo(os.path.join(cls.site, "fifo"))
        os.chmod(os.path.join(cls.site, "locked"), 0)
        cls.arguments = ("--dir", cls.site)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.root)

    def get(self, path, *more):
        return curl("--path-as-is", *more, self.origin.url + path)

    def status(self, path, *more):
        return head_of("--path-as-is", *more, self.origin.url + path)[0]

    def test_contents_and_types(self):
        for path, content, kind in (
            ("/", b"<h1>index</h1>", "text/html; charset=utf-8"),
            ("/index.html", b"<h1>index</h1>", "text/html; charset=utf-8"),
            ("/small.txt", self.small, "text/plain; charset=utf-8"),
            ("/small.txt?query=1", self.small, "text/plain; charset=utf-8"),
            ("/big.bin", self.big, "application/octet-stream"),
            ("/empty.css", b"", "text/css; charset=utf-8"),
            ("/UPPER.PNG", b"png", "image/png"),
            ("/none", b"none", "application/octet-stream"),
            ("/with%20space%20%26%20%3Cx%3E.txt", b"odd", "text/plain; charset=utf-8"),
            ("/sub/a%2520b.json", b"{}", "application/json"),
            ("/sub/../small.txt", self.small, "text/plain; charset=utf-8"),
            ("/./sub/.//page.html", b"page", "text/html; charset=utf-8"),
            ("/inside-link.txt", self.small, "text/plain; charset=utf-8"),
            ("/sub-link/page.html", b"page", "text/html; charset=utf-8"),
        ):
            self.assertEqual(self.get(path), content, path)
            status, fields = head_of("--path-as-is", self.origin.url + path)
            self.assertEqual((status, fields["content-type"]), (200, kind), path)
            self.assertEqual(fields["content-length"], str(len(content)))
            head = head_of("--path-as-is", "-I", self.origin.url + path)
            self.assertEqual((head[0], head[1]["content-length"]), (200, str(len(content))))

    def test_nothing_outside(self):
        for path in (
            "/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "/sub/../../outside.txt",
            "/sub/%2e%2e/%2e%2e/outside.txt", "/outside-link.txt", "/absolute-link.txt",
            "/up/outside.txt", "/up/", "/up", "//../outside.txt", "/small.txt%00.html", "/%zz", "/%2",
            "/sub/..\\..\\outside.txt", "/....//outside.txt", "/%c0%ae%c0%ae/outside.txt",
            "/proc/self/environ", "//etc/passwd",
        ):
            answer = self.origin.raw(
                b"GET " + path.encode() + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            self.assertIn(answer[:12], (b"HTTP/1.1 400", b"HTTP/1.1 404"), path)
            self.assertNotIn(b"outside", answer.split(b"\r\n\r\n", 1)[1], path)

    def test_missing(self):
        self.assertEqual(self.status("/nothing"), 404)
        self.assertEqual(self.status("/small.txt/"), 404)
        self.assertEqual(self.status("/fifo"), 404)
        self.assertEqual(self.status("/" + "x" * 300), 404)
        self.assertEqual(self.status("/" + "x/" * 2500), 414)
        if os.getuid() != 0:
            self.assertEqual(self.status("/locked"), 403)

    def test_missing_keeps_the_connection(self):
        out = curl("-w", "%{num_connects}\n", "-o", "/dev/null", self.origin.url + "/nothing",
                   "-o", "/dev/null", self.origin.url + "/small.txt")
        self.assertEqual(out.split(), [b"1", b"0"])

    def test_directories(self):
        status, fields = head_of(self.origin.url + "/sub?a=b&c")
        self.assertEqual((status, fields["location"]), (301, "/sub/?a=b&c"))
        status, fields = head_of("--path-as-is", self.origin.url + "//sub")
        self.assertEqual((status, fields["location"]), (301, "/sub/"))
        page = self.get("/sub/").decode()
        self.assertIn("<title>Index of /sub/</title>", page)
        self.assertIn('<a href="./page.html">page.html</a>', page)
        self.assertIn('<a href="./a%2520b.json">a%20b.json</a>', page)
        self.assertEqual(head_of("-I", self.origin.url + "/sub/")[1]["content-length"], str(len(page)))
        os.makedirs(os.path.join(self.site, "many", "<b>"), exist_ok=True)
        for i in range(1000):
            open(os.path.join(self.site, "many", "file-%04d" % i), "w").close()
        page = self.get("/many/").decode()
        self.assertEqual(page.count("<li>"), 1002)
        self.assertIn('<a href="./%3Cb%3E/">&lt;b&gt;/</a>', page)
        self.assertLess(page.index("file-0001"), page.index("file-0002"))

    def test_ranges(self):
        size = len(self.big)
        for spec, first, last in (
            ("0-0", 0, 0), ("0-9", 0, 9), ("100-299999", 100, 299999), ("2999990-", size - 10, size - 1),
            ("-5", size - 5, size - 1), ("-99999999", 0, size - 1),
            ("5-99999999999999999999999", 5, size - 1),
        ):
            got = self.get("/big.bin", "-r", spec)
            self.assertEqual(got, self.big[first:last + 1], spec)
            status, fields = head_of("-r", spec, self.origin.url + "/big.bin")
            self.assertEqual(status, 206)
            self.assertEqual(fields["content-range"], "bytes %d-%d/%d" % (first, last, size))
            self.assertEqual(fields["content-length"], str(last - first + 1))
        for spec in ("%d-" % size, "99999999-", "-0"):
            status, fields = head_of("-r", spec, self.origin.url + "/big.bin")
            self.assertEqual((status, fields["content-range"]), (416, "bytes */%d" % size), spec)
        for value in ("bytes=0-1,3-4", "lines=0-1", "bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "bytes"):
            self.assertEqual(self.get("/small.txt", "-H", "Range: " + value), self.small, value)
        self.assertEqual(head_of("-I", "-r", "0-1", self.origin.url + "/big.bin")[0], 200)
        self.assertEqual(self.status("/empty.css", "-r", "0-"), 416)
        self.assertEqual(self.status("/empty.css", "-r", "-5"), 200)

    def test_conditions(self):
        url = self.origin.url + "/small.txt"
        fields = head_of(url)[1]
        etag, modified = fields["etag"], fields["last-modified"]
        self.assertEqual(modified, "Sun, 09 Sep 2001 01:46:40 GMT")
        self.assertEqual(fields["accept-ranges"], "bytes")
        before, after = "Sun, 09 Sep 2001 01:46:39 GMT", "Sunday, 09-Sep-01 01:46:41 GMT"

        for status, lines in (
            (304, ["If-None-Match: " + etag]),
            (304, ["If-None-Match: W/" + etag]),
            (304, ["If-None-Match: \"x\", " + etag]),
            (304, ["If-None-Match: \"x\"", "If-None-Match: " + etag]),
            (304, ["If-None-Match: *"]),
            (200, ["If-None-Match: \"x\""]),
            (200, ["If-None-Match: \"x\"", "If-Modified-Since: " + modified]),
            (304, ["If-Modified-Since: " + modified]),
            (304, ["If-Modified-Since: " + after]),
            (200, ["If-Modified-Since: " + before]),
            (200, ["If-Modified-Since: yesterday"]),
            (200, ["If-Match: " + etag]),
            (200, ["If-Match: *"]),
            (412, ["If-Match: \"x\""]),
            (412, ["If-Match: W/" + etag]),
            (412, ["If-Unmodified-Since: " + before]),
            (200, ["If-Unmodified-Since: " + modified]),
            (206, ["Range: bytes=0-1", "If-Range: " + etag]),
            (206, ["Range: bytes=0-1", "If-Range: " + modified]),
            (200, ["Range: bytes=0-1", "If-Range: W/" + etag]),
            (200, ["Range: bytes=0-1", "If-Range: \"x\""]),
            (200, ["Range: bytes=0-1", "If-Range: " + before]),
            (304, ["Range: bytes=0-1", "If-None-Match: " + etag]),
        ):
            got, fields = head_of(*sum((["-H", line] for line in lines), []), url)
            self.assertEqual(got, status, lines)
            if status == 304:
                self.assertEqual(fields["etag"], etag)
                self.assertNotIn("content-length", fields)

    def test_methods(self):
        for method in ("POST", "PUT", "DELETE"):
            status, fields = head_of("-X", method, self.origin.url + "/small.txt")
            self.assertEqual((status, fields["allow"]), (405, "GET, HEAD, OPTIONS"))
        status, fields = head_of("-X", "OPTIONS", self.origin.url + "/small.txt")
        self.assertEqual((status, fields["allow"]), (200, "GET, HEAD, OPTIONS"))
        status = head_of("-d", "x" * 100000, self.origin.url + "/small.txt")[0]
        self.assertEqual(status, 405)

    def test_pipelined_files(self):
        one = b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n"
        answer = self.origin.raw(one * 10 + b"GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK\r\n"), 21)
        self.assertEqual(answer.count(self.big), 10)

    def test_a_file_that_shrinks(self):
        path = os.path.join(self.site, "shrinking")
        with open(path, "wb") as f:
            f.truncate(200 << 20)
        with self.origin.connect() as s:
            s.sendall(b"GET /shrinking HTTP/1.1\r\nHost: a\r\n\r\n")
            s.recv(1000)
            os.truncate(path, 10)
            self.assertLess(len(read_all(s)), 200 << 20)  # closed, not hung
        self.assertEqual(self.get("/none"), b"none")

    def test_no_descriptor_leaks(self):
        folder = "/proc/%d/fd" % self.origin.process.pid
        self.get("/big.bin")
        time.sleep(0.2)
        before = len(os.listdir(folder))
        for path in ("/big.bin", "/small.txt", "/sub/", "/sub", "/", "/nothing", "/fifo", "/up"):
            for method in ("GET", "HEAD", "POST") * 5:
                self.origin.raw(b"%s %s HTTP/1.0\r\n\r\n" % (method.encode(), path.encode()))
        time.sleep(0.2)
        self.assertLessEqual(len(os.listdir(folder)), before)


class Timeouts(ServerTest):
    arguments = ("--timeout", "500ms")

    def closed_after(self, s):
        started = time.time()
        read_all(s)
        return time.time() - started

    def test_idle(self):
        with self.origin.connect() as s:
            self.assertTrue(0.4 < self.closed_after(s) < 3)
        with self.origin.connect() as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertTrue(0.4 < self.closed_after(s) < 3)

    def test_slow_head(self):
        started = time.time()
        with self.origin.connect() as s:
            with self.assertRaises(OSError):
                for byte in b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100:
                    s.sendall(bytes([byte]))
                    time.sleep(0.1)
        self.assertLess(time.time() - started, 4)

    def test_slow_body_may_take_its_time(self):
        with self.origin.connect() as s:
            s.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\nConnection: close\r\n\r\n")
            for _ in range(8):
                time.sleep(0.2)
                s.sendall(b"x")
            self.assertIn(b"X-Received-Bytes: 8\r\n", read_all(s))

    def test_stuck_body(self):
        with self.origin.connect() as s:
            s.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n1")
            self.assertTrue(0.4 < self.closed_after(s) < 3)

    def test_stuck_reader(self):
        with self.origin.connect() as s:
            s.sendall(b"GET /size/50000000 HTTP/1.1\r\nHost: a\r\n\r\n")
            time.sleep(2)
            self.assertLess(len(read_all(s)), 50000000)


class CommandLine(unittest.TestCase):
    def run_origin(self, *arguments):
        return subprocess.run([SALLYPORT, "origin", *arguments], capture_output=True, text=True,
                              timeout=30)

    def test_bad_arguments(self):
        for arguments in (
            ("--listen", "nonsense"), ("--listen",), ("--listen", "127.0.0.1"), ("--listen", "unix@/x"),
            ("--listen", "127.0.0.1:99999"), ("--listen=127.0.0.1:1-5",), ("--size", "-1"), ("--size", "x"),
            ("--threads", "0"), ("--threads", "x"), ("--timeout", "soon"), ("--bogus",), ("word",),
            ("--size", "1", "--dir", "/"),
        ):
            done = self.run_origin(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_help(self):
        done = self.run_origin("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--listen", done.stdout)

    def test_missing_directory(self):
        for path in ("/no/such/directory", "/dev/null"):
            done = self.run_origin("--listen", "127.0.0.1:0", "--dir", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(path, done.stderr)

    def test_port_in_use(self):
        for first in ("1", "2"):
            running = Origin("--threads", first)
            try:
                for second in ("1", "3"):
                    done = self.run_origin("--listen", "127.0.0.1:%d" % running.port,
                                           "--threads", second)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("127.0.0.1:%d is in use" % running.port, done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1)
            finally:
                running.stop()

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            for threads in ("1", "4"):
                origin = Origin("--threads", threads)
                with origin.connect() as idle, origin.connect() as busy:
                    busy.sendall(b"GET /size/100000000 HTTP/1.1\r\nHost: a\r\n\r\n")
                    busy.recv(10)
                    started = time.time()
                    self.assertEqual(origin.stop(number), (0, ""))
                    self.assertLess(time.time() - started, 5)
                    self.assertEqual(idle.recv(10), b"")
                # The port is free at once.
                done = Origin("--threads", threads)
                done.stop()

    def test_ipv6(self):
        process = subprocess.Popen([SALLYPORT, "origin", "--listen", "[::1]:0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        if not line and "Address family" in process.stderr.read():
            process.communicate()
            self.skipTest("no IPv6 here")
        url = re.search(r"http://\[::1\]:\d+/", line).group(0)
        self.assertEqual(len(curl("-g", url)), 64)
        process.terminate()
        process.communicate()
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()

"""
Requests that two parsers could understand differently: refused with 400 and a log line that says
why, and nothing of them reaches a server. Streams of tests/unit/http/smuggling go through the whole
program here; the unit tests have judged the parser alone.
"""

import os
import re
import time
import unittest

from harness import IS_SALLYPORT, LIMITS, ROOT, Case, ours_alone, read_all, statuses_of, wait_until

CORPUS = os.path.join(ROOT, "tests", "unit", "http", "smuggling")

CONFIG = """
defaults
    mode http
    option httplog
    log stdout format raw local0
""" + LIMITS + """
    timeout http-request 1s
    timeout http-keep-alive 1s
listen web
    bind 127.0.0.1:@web@
    @mode@
    server s1 127.0.0.1:@server@
"""

HEAD = b"POST /attack HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SECOND = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

# Refused in its head: what is wrong, and the words of the reason that the log gives.
REFUSED = {
    "differing lengths": (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "Content-Length"),
    "differing lengths in one field": (HEAD + b"Content-Length: 5, 6\r\n\r\nhello", "Content-Length"),
    "length with sign": (HEAD + b"Content-Length: +5\r\n\r\nhello", "Content-Length"),
    "negative length": (HEAD + b"Content-Length: -5\r\n\r\nhello", "Content-Length"),
    "hexadecimal length": (HEAD + b"Content-Length: 0x5\r\n\r\nhello", "Content-Length"),
    "overflowing length": (HEAD + b"Content-Length: 18446744073709551621\r\n\r\nhello", "Content-Length"),
    "length with a blank inside": (HEAD + b"Content-Length: 1 5\r\n\r\nhello", "Content-Length"),
    "empty length": (HEAD + b"Content-Length:\r\n\r\nhello", "Content-Length"),
    "coding that is not chunked": (HEAD + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
    "chunked is not the last": (HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
    "chunked twice": (HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
    "chunked twice in two fields": (
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
    "coding with a control byte": (HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", ""),
    "blank before the colon": (HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "field name"),
    "tab before the colon": (HEAD + b"Content-Length\t: 5\r\n\r\nhello", "field name"),
    "field without a name": (HEAD + b": x\r\n\r\n", "field name"),
    "line without a colon": (HEAD + b"Content-Length 5\r\n\r\n", "field name"),
    "field name with a control byte": (HEAD + b"X\x01: y\r\n\r\n", "field name"),
    "folded line": (HEAD + b"X: a\r\n b\r\n\r\n", "folding"),
    "folded Transfer-Encoding": (HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", ""),
    "folded first field": (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", ""),
    "bare CR in a value": (HEAD + b"X: a\rTransfer-Encoding: chunked\r\n\r\n", ""),
    "bare CR at a line's end": (HEAD + b"X: a\r\r\n\r\n", ""),
    "NUL in a value": (HEAD + b"X: a\0b\r\n\r\n", ""),
    "NUL in the target": (b"GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    "blank in the target": (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", ""),
    "control byte in the target": (b"GET /a\x7fb HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    "no version": (b"GET /\r\nHost: a\r\n\r\n", ""),
    "unknown version": (b"GET / HTTP/3.1\r\nHost: a\r\n\r\n", "version"),
    "not HTTP": (b"GET / HTTQ/1.1\r\nHost: a\r\n\r\n", "version"),
    "version with blanks": (b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", ""),
    "method with a bad byte": (b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "method"),
    "relative target": (b"GET admin HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    "star for GET": (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    "CONNECT without a port": (b"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", ""),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "Host"),
    "host with a path": (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "Host"),
    "host with a blank": (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "Host"),
    "host that is not the target's": (b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "Host"),
    "nothing but noise": (b"\x16\x03\x01\x00\xa5\r\n\r\n", ""),
}

# Refused in its body: the head may have gone to the server, an end of the message never does.
BROKEN_BODIES = {
    "size overflows": CHUNKED + b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "size with 0x": CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "negative size": CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
    "no size": CHUNKED + b"\r\nhello\r\n0\r\n\r\n",
    "size with underscore": CHUNKED + b"5_0\r\nhello\r\n0\r\n\r\n",
    "no line end after the data": CHUNKED + b"5\r\nhelloX0\r\n\r\n",
    "data longer than its size": CHUNKED + b"3\r\nhello\r\n0\r\n\r\n",
    "bare LF in a chunk line": CHUNKED + b"5;a\nhello\r\n0\r\n\r\n",
    "bare CR in a chunk line": CHUNKED + b"5\rX\r\nhello\r\n0\r\n\r\n",
    "NUL in an extension": CHUNKED + b"5;a=\0\r\nhello\r\n0\r\n\r\n",
    "trailer without a name": CHUNKED + b"0\r\n: x\r\n\r\n",
    "trailer that is folded": CHUNKED + b"0\r\nX: a\r\n b\r\n\r\n",
    "length as trailer": CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n",
}


class Smuggling(Case):
    def setUp(self):
        super().setUp()
        self.got = []
        self.backend = self.server(self.serve)
        self.lb = self.proxy(CONFIG, mode="option http-server-close", server=self.backend.port)

    def serve(self, connection):
        """Notes what comes; answers each request that is whole."""
        seen = {"bytes": b"", "answered": 0, "ended": False}
        self.got.append(seen)
        try:
            while True:
                head = connection.head()
                seen["bytes"] += head
                seen["bytes"] += connection.body(head)
                seen["answered"] += 1
                connection.answer(b"served")
        except (EOFError, ValueError):
            seen["bytes"] += connection.buffer
        finally:
            seen["ended"] = True

    def forget(self):
        """Between two attacks: all connections to the server have ended."""
        wait_until(lambda: len(self.got) == len(self.backend.connections) and all(
            seen["ended"] for seen in self.got), "the end of the server's connections")
        self.got.clear()
        self.backend.connections.clear()

    def send(self, data):
        with self.lb.connect("web", 10) as sock:
            sock.sendall(data)
            return read_all(sock)

    def forwarded(self):
        return b"".join(seen["bytes"] for seen in self.got)

    def test_refused_heads(self):
        # HAProxy 2.6 lets these pass, later versions do not.
        lenient = () if IS_SALLYPORT else (
            "NUL in a value", "host with a path", "host with a blank", "relative target", "star for GET",
            "CONNECT without a port", "coding that is not chunked", "chunked twice in two fields",
            "chunked twice", "two hosts", "host that is not the target's", "coding with a control byte",
            "empty length", "folded line", "folded Transfer-Encoding", "control byte in the target",
            "unknown version", "bare CR in a value")
        for name, (data, reason) in REFUSED.items():
            if name in lenient:
                continue
            with self.subTest(name):
                self.forget()
                before = len(self.lb.output())
                answer = self.send(data + SECOND)
                self.assertEqual(statuses_of(answer), [400], answer)
                self.assertEqual(self.forwarded(), b"")
                line = wait_until(lambda: re.search(
                    r".* 400 .* PR-- .*<BADREQ>", self.lb.output()[before:]), "the log line of " + name, 3)
                self.assertTrue(line)
                if IS_SALLYPORT:
                    why = wait_until(lambda: re.search(
                        r"invalid request refused: (.*)", self.lb.output()[before:]), "the reason of " + name, 2)
                    self.assertIn(reason, why.group(1))

    def test_broken_bodies(self):
        for name, data in BROKEN_BODIES.items():
            if not IS_SALLYPORT and name in ("trailer that is folded", "length as trailer", "NUL in an extension",
                                             "bare LF in a chunk line"):
                continue
            with self.subTest(name):
                self.forget()
                before = len(self.lb.output())
                answer = self.send(data + SECOND)
                self.assertEqual(statuses_of(answer), [400], answer)
                self.assertNotIn(b"smuggled", self.forwarded())
                if IS_SALLYPORT:
                    self.assertFalse(any(seen["answered"] for seen in self.got), self.got)
                    wait_until(lambda: re.search(
                        r"invalid request refused: ", self.lb.output()[before:]), "the reason of " + name, 2)

    BOTH = HEAD + b"Content-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + SECOND

    @ours_alone
    def test_both_framings_are_refused(self):
        """Content-Length beside chunked: HAProxy drops the length; we take neither of two lengths."""
        answer = self.send(self.BOTH)
        self.assertEqual(statuses_of(answer), [400], answer)
        self.assertEqual(self.forwarded(), b"")
        self.lb.wait_output("invalid request refused: .*both Content-Length and Transfer-Encoding", 3)

    def test_both_framings_are_made_one(self):
        """As HAProxy does, for those who ask for it: the length goes, and the connection ends behind the message."""
        proxy = self.proxy(CONFIG, mode="option http-server-close\n    option accept-invalid-http-request",
                           server=self.backend.port, name="lenient")
        answer = proxy.raw("web", self.BOTH)
        self.assertEqual(statuses_of(answer), [200], answer)
        self.assertNotIn(b"content-length", self.forwarded().lower())
        self.assertNotIn(b"smuggled", self.forwarded())
        self.assertEqual(self.forwarded().count(b" HTTP/1.1\r\n"), 1)

    @ours_alone
    def test_both_framings_in_http10(self):
        answer = self.send(b"POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SECOND)
        self.assertEqual(statuses_of(answer), [400], answer)
        self.assertEqual(self.forwarded(), b"")

    def test_a_refusal_ends_the_connection(self):
        """The good requests before it are answered, nothing behind it is."""
        good = b"GET /good HTTP/1.1\r\nHost: a\r\n\r\n"
        answer = self.send(good + good + REFUSED["differing lengths"][0] + SECOND)
        self.assertEqual(statuses_of(answer), [200, 200, 400], answer)
        self.assertEqual(self.forwarded().count(b"/good"), 2)
        self.assertNotIn(b"smuggled", self.forwarded())

    def test_pieces_make_no_difference(self):
        """Byte by byte the verdicts are the same."""
        names = ["differing lengths", "blank before the colon"]
        if IS_SALLYPORT:
            names += ["folded line", "bare CR in a value"]
        for name in names:
            with self.subTest(name):
                with self.lb.connect("web", 10) as sock:
                    for byte in REFUSED[name][0]:
                        try:
                            sock.send(bytes([byte]))
                        except OSError:
                            break
                    self.assertEqual(statuses_of(read_all(sock)), [400])
                self.assertEqual(self.forwarded(), b"")

    @ours_alone
    def test_corpus(self):
        """As many whole messages reach the server as the verdict says, then 400 (or 422)."""
        with open(os.path.join(CORPUS, "verdicts.txt"), encoding="ascii") as file:
            lines = [line.split() for line in file if line.strip() and line[0] != "#"]
        self.assertGreater(len(lines), 100)
        for name, messages, verdict in lines:
            with self.subTest(name):
                self.forget()
                with open(os.path.join(CORPUS, name + ".req"), "rb") as file:
                    data = file.read()
                with self.lb.connect("web", 10) as sock:
                    sock.sendall(data)
                    sock.shutdown(1)
                    answer = statuses_of(read_all(sock))
                self.check_verdict(name, int(messages), verdict, answer)

    def check_verdict(self, name, messages, verdict, answer):
        served = answer.count(200)
        self.assertLessEqual(served, messages, answer)
        if verdict == "H1_UNKNOWN_CODING":
            self.assertEqual(answer[-1:], [422])
        elif verdict != "H1_OK":
            self.assertIn(answer[-1] if answer else 0, (400, 413, 431), answer)
        for seen in self.got:
            self.assertLessEqual(seen["answered"], messages)


class Responses(Case):
    """The same care towards servers: 502, and the connection is not used again."""

    BAD = {
        "differing lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "malformed length": b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello",
        "chunked twice": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "blank before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
        "no status": b"HTTP/1.1 OK\r\n\r\n",
        "bad status": b"HTTP/1.1 2000 OK\r\n\r\n",
        "bare CR": b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
        "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "folded line": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    }

    def test_refused(self):
        lenient = () if IS_SALLYPORT else ("folded line", "bad status", "chunked twice")
        for name, data in self.BAD.items():
            if name in lenient:
                continue
            with self.subTest(name):
                def handler(connection, data=data):
                    connection.request()
                    connection.send(data)
                    time.sleep(0.3)

                server = self.server(handler)
                proxy = self.proxy(CONFIG.replace("server s1", "retries 0\n    server s1"), server=server.port,
                                   name="p", mode="")
                answer = proxy.raw("web", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                self.assertEqual(statuses_of(answer), [502], answer)
                proxy.wait_output(r" 502 .* PH--")
                proxy.stop()

    def test_a_second_answer_is_dropped(self):
        """What follows an answer that nobody asked for never becomes another client's answer."""
        def handler(connection):
            while True:
                connection.request()
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
                                b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")

        server = self.server(handler)
        proxy = self.proxy(CONFIG.replace("server s1", "http-reuse always\n    server s1"), server=server.port,
                           mode="")
        with proxy.connect("web") as sock:
            for _ in range(5):
                sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                data = b""
                while b"good" not in data:
                    part = sock.recv(4096)
                    self.assertTrue(part)
                    data += part
                self.assertNotIn(b"poison", data)


if __name__ == "__main__":
    unittest.main()

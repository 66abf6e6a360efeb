"""TLS in front and behind: versions, names, certificates of both sides, resumption."""

import os
import re
import shutil
import ssl
import subprocess
import tempfile
import unittest

from harness import (
    IS_SALLYPORT, LIMITS, Authority, Case, connect_tls, curl, free_port, ours_alone, read_all, require, run, serve_hello,
    unverified_context,
)

ANSWER = """
    http-request return status 200 content-type text/plain lf-string "%[ssl_fc] %[ssl_fc_protocol] %[ssl_fc_cipher] %[ssl_fc_alg_keysize] sni=%[ssl_fc_sni] alpn=%[ssl_fc_alpn] resumed=%[ssl_fc_is_resumed]"
"""

DEFAULTS = """
defaults
    mode http
""" + LIMITS


def s_client(port, *arguments, data="", check=True, seconds=15):
    """Output of openssl s_client, which stays for `seconds` at most."""
    require("openssl")
    done = subprocess.run(
        ["openssl", "s_client", "-connect", "127.0.0.1:%d" % port, *arguments], input=data, text=True,
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=seconds,
    )
    if check and done.returncode:
        raise AssertionError(done.stdout)
    return done.stdout


REQUEST = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"


def signature_type(port, *arguments):
    """By which kind of key the server proves itself."""
    out = s_client(port, "-servername", "a.example", *arguments, data="Q\n")
    return re.search(r"Peer signature type: (\S+)", out).group(1)


class TlsCase(Case):
    """One authority and its certificates for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.certs = tempfile.mkdtemp(prefix="sp-certs-", dir="/tmp")
        os.chmod(cls.certs, 0o755)
        cls.addClassCleanup(shutil.rmtree, cls.certs, ignore_errors=True)
        cls.authority = Authority(cls.certs)
        cls.issue = staticmethod(cls.authority.issue)
        cls.ec = cls.issue("ec.pem", "a.example", ["a.example", "127.0.0.1", "localhost"])
        cls.rsa = cls.issue("rsa.pem", "a.example", ["a.example", "127.0.0.1", "localhost"], key="rsa")


class Versions(TlsCase):
    def test_curl_with_each_version(self):
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s
""" % self.rsa + ANSWER)
        for option, version in (("--tlsv1.2", "TLSv1.2"), ("--tlsv1.3", "TLSv1.3")):
            out = curl("--cacert", self.authority.ca, option, "--tls-max", version[4:],
                       proxy.url("web", scheme="https"))
            self.assertRegex(out, r"^1 %s \S+ (128|256) " % version)

    def test_limits_of_versions(self):
        proxy = self.proxy(DEFAULTS + """
frontend only13
    bind 127.0.0.1:@only13@ ssl crt @dir@/ec.pem ssl-min-ver TLSv1.3
    bind 127.0.0.1:@only12@ ssl crt @dir@/ec.pem ssl-max-ver TLSv1.2
    bind 127.0.0.1:@no12@ ssl crt @dir@/ec.pem no-tlsv12
    bind 127.0.0.1:@force12@ ssl crt @dir@/ec.pem force-tlsv12
""".replace("@dir@", self.certs) + ANSWER)
        url = lambda name: proxy.url(name, scheme="https")  # noqa: E731
        for name, version, works in (
            ("only13", "1.3", True), ("only13", "1.2", False), ("only12", "1.2", True), ("only12", "1.3", False),
            ("no12", "1.3", True), ("no12", "1.2", False), ("force12", "1.2", True), ("force12", "1.3", False),
        ):
            with self.subTest(name=name, version=version):
                done = curl("-k", "--tlsv" + version, "--tls-max", version, url(name), check=False)
                self.assertEqual(done.returncode == 0, works, done.stderr + done.stdout)

    def test_ciphers_and_curves(self):
        proxy = self.proxy("""
global
    ssl-default-bind-ciphers ECDHE-RSA-AES256-GCM-SHA384
    ssl-default-bind-ciphersuites TLS_CHACHA20_POLY1305_SHA256
    ssl-default-bind-curves P-384
    ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets
    tune.ssl.default-dh-param 2048
""" + DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt @certs@/rsa.pem
    bind 127.0.0.1:@own@ ssl crt @certs@/rsa.pem ciphers ECDHE-RSA-AES128-GCM-SHA256 curves X25519:P-256
""".replace("@certs@", self.certs) + ANSWER)
        self.assertIn("ECDHE-RSA-AES256-GCM-SHA384 256",
                      curl("-k", "--tls-max", "1.2", proxy.url("web", scheme="https")))
        self.assertIn("TLS_CHACHA20_POLY1305_SHA256 256", curl("-k", proxy.url("web", scheme="https")))
        self.assertIn("ECDHE-RSA-AES128-GCM-SHA256 128",
                      curl("-k", "--tls-max", "1.2", proxy.url("own", scheme="https")))
        out = s_client(proxy.ports["web"], data="Q\n")
        self.assertRegex(out, "Server Temp Key: ECDH, (P-384|secp384r1)")
        out = s_client(proxy.ports["own"], data="Q\n")
        self.assertIn("Server Temp Key: X25519", out)
        self.assertIn("Server Temp Key: ECDH, prime256v1",
                      s_client(proxy.ports["own"], "-groups", "P-256", data="Q\n"))

    def test_plain_and_garbage_on_a_tls_port(self):
        """No answer that looks like TLS or HTTP of the inside; the next client is served."""
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s
""" % self.ec + ANSWER)
        for data in (REQUEST.encode(), b"\x16\x03\x01\xff\xff" + b"\0" * 200, b"\x80\x2e\x01", b"\xff" * 3000):
            self.assertNotIn(b"200 OK", self.send_and_end(proxy, data))
        self.assertIn("TLSv1.3", curl("-k", proxy.url("web", scheme="https")))

    def send_and_end(self, proxy, data):
        with proxy.connect("web", 5) as sock:
            sock.sendall(data)
            sock.shutdown(1)
            return read_all(sock)

    def test_large_body_in_small_and_large_records(self):
        origin = self.nginx()
        content = os.urandom(3 << 20)
        origin.file("big", content)
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s
    default_backend app
backend app
    server s1 127.0.0.1:@origin@
""" % self.ec, origin=origin.port)
        self.assertEqual(curl("-k", proxy.url("web", "/big", scheme="https"), text=False), content)
        # One byte a record, as a hostile client may do.
        with connect_tls(proxy.ports["web"]) as tls:
            for byte in b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":
                tls.sendall(bytes([byte]))
            self.assertIn(b"hello", read_all(tls))


class Names(TlsCase):
    """Which certificate a client gets for the name that it asks for."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sources = os.path.join(cls.certs, "names")
        os.mkdir(cls.sources)
        key = os.path.join(cls.certs, "shared.key")
        with open(cls.ec, encoding="ascii") as file:
            text = file.read()
        with open(key, "w", encoding="ascii") as file:
            file.write(text[text.index("-----BEGIN PRIVATE KEY"):])
        for file, name, names in (
            ("default.pem", "default.example", []),
            ("www.pem", "www.example.org", ["www.example.org", "alias.example.org"]),
            ("wild.pem", "wild", ["*.example.org"]),
            ("deep.pem", "deep", ["*.sub.example.org", "exact.sub.example.org"]),
            ("xn.pem", "idn", ["xn--bcher-kva.example"]),
        ):
            cls.issue("names/" + file, name, names, key=key)

    def setUp(self):
        super().setUp()
        shutil.copytree(self.sources, self.path("c"))

    def common_name(self, port, name):
        context = ssl.create_default_context(cafile=self.authority.ca)
        context.check_hostname = False
        try:
            with connect_tls(port, name, context) as tls:
                subject = tls.getpeercert()["subject"]
        except ssl.SSLError:
            return None
        return dict(item for part in subject for item in part)["commonName"]

    def names(self, proxy, expected):
        for name, common in expected.items():
            with self.subTest(name):
                self.assertEqual(self.common_name(proxy.ports["web"], name), common)

    expected = {
        "www.example.org": "www.example.org",
        "WWW.Example.ORG": "www.example.org",
        "alias.example.org": "www.example.org",
        "other.example.org": "wild",
        "a.sub.example.org": "deep",
        "a.b.example.org": "default.example",  # a star stands for one label
        "example.org": "default.example",
        "xn--bcher-kva.example": "idn",
        "unknown.example": "default.example",
        None: "default.example",
    }

    def test_several_crt(self):
        folder = self.path("c")
        proxy = self.proxy(("""
global
    crt-base @dir@/c
""" + DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt default.pem crt www.pem crt @dir@/c/wild.pem crt deep.pem crt xn.pem
""") + ANSWER)
        self.names(proxy, self.expected)
        self.assertIn("sni=www.example.org", curl(
            "-k", "--resolve", "www.example.org:%d:127.0.0.1" % proxy.ports["web"],
            "https://www.example.org:%d/" % proxy.ports["web"]))

    def test_folder(self):
        """A folder: the first file in the order of the names is the default; keys may stand beside."""
        folder = self.path("c")
        os.rename(folder + "/default.pem", folder + "/000.pem")
        with open(folder + "/www.pem", encoding="ascii") as file:
            text = file.read()
        cut = text.index("-----BEGIN PRIVATE KEY")
        with open(folder + "/www.pem", "w", encoding="ascii") as file:
            file.write(text[:cut])
        with open(folder + "/www.pem.key", "w", encoding="ascii") as file:
            file.write(text[cut:])
        with open(folder + "/.hidden", "w", encoding="ascii") as file:
            file.write("not a certificate")
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt @dir@/c/
""" + ANSWER)
        self.names(proxy, self.expected)

    def test_crt_list(self):
        """Filters replace the names of the certificate; options belong to the entry."""
        folder = self.path("c")
        self.write("list", """# comment
@c@/default.pem
@c@/www.pem [ssl-max-ver TLSv1.2 alpn http/1.1] only.example.org

@c@/wild.pem *.list.example !not.list.example
@c@/deep.pem
""".replace("@c@", folder))
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt-list @dir@/list
""" + ANSWER)
        self.names(proxy, {
            "only.example.org": "www.example.org",
            "www.example.org": "default.example",
            "x.list.example": "wild",
            "not.list.example": "default.example",
            "a.sub.example.org": "deep",
            None: "default.example",
        })
        resolve = ["--resolve", "only.example.org:%d:127.0.0.1" % proxy.ports["web"], "-k"]
        self.assertIn("TLSv1.2", curl(*resolve, "https://only.example.org:%d/" % proxy.ports["web"]))
        self.assertIn("TLSv1.3", curl("-k", proxy.url("web", scheme="https")))

    def test_strict_sni(self):
        folder = self.path("c")
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl strict-sni crt @dir@/c/www.pem crt @dir@/c/wild.pem
""" + ANSWER)
        self.names(proxy, {
            "www.example.org": "www.example.org",
            "x.example.org": "wild",
            "unknown.example": None,
            None: None,
        })

    def test_rsa_and_ecdsa_for_one_name(self):
        """The certificate is chosen by what the client can verify, in TLS 1.2 and 1.3."""
        for crt in ("crt %s crt %s" % (self.rsa, self.ec), "crt %s" % self.bundle()):
            proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl %s
""" % crt + ANSWER, name="both%d" % len(crt))
            port = proxy.ports["web"]
            self.assertEqual(signature_type(port), "ECDSA")
            self.assertEqual(signature_type(port, "-sigalgs", "rsa_pss_rsae_sha256:RSA+SHA256"), "RSA-PSS")
            out = s_client(port, "-servername", "a.example", "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256",
                           data="Q\n")
            self.assertIn("ECDHE-RSA-AES128-GCM-SHA256", out)
            out = s_client(port, "-servername", "a.example", "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256",
                           data="Q\n")
            self.assertIn("ECDHE-ECDSA-AES128-GCM-SHA256", out)
            proxy.stop()

    def bundle(self):
        """FILE.rsa and FILE.ecdsa, named FILE on the bind line."""
        base = self.path("bundle")
        for kind, source in (("rsa", self.rsa), ("ecdsa", self.ec)):
            with open(source, encoding="ascii") as file:
                self.write("bundle." + kind, file.read())
        return base

    def test_chain_is_sent(self):
        """What follows the certificate in its file goes to the client, in order."""
        with open(self.ec, encoding="ascii") as leaf, open(self.authority.ca, encoding="ascii") as ca:
            self.write("chain.pem", leaf.read() + ca.read())
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt @dir@/chain.pem
""" + ANSWER)
        out = s_client(proxy.ports["web"], "-showcerts", data="Q\n")
        self.assertEqual(out.count("BEGIN CERTIFICATE"), 2)


class Alpn(TlsCase):
    def test_selection(self):
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %(ec)s alpn http/1.1,http/1.0
    bind 127.0.0.1:@none@ ssl crt %(ec)s%(none)s
""" % {"ec": self.ec, "none": " no-alpn" if IS_SALLYPORT else ""} + ANSWER)
        for port, offered, chosen in (
            ("web", ["http/1.1"], "http/1.1"), ("web", ["http/1.0", "http/1.1"], "http/1.1"),
            ("web", ["spdy/1"], None), ("web", [], None), ("none", ["http/1.1"], None),
        ):
            with self.subTest(port=port, offered=offered):
                context = unverified_context()
                if offered:
                    context.set_alpn_protocols(offered)
                with connect_tls(proxy.ports[port], context=context) as tls:
                    self.assertEqual(tls.selected_alpn_protocol(), chosen)
                    tls.sendall(REQUEST.encode())
                    self.assertIn(("alpn=%s " % (chosen or "")).encode(), read_all(tls))


class ClientCertificates(TlsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good = cls.issue("client.pem", "client")
        other = Authority(os.path.join(cls.certs, "other"), "Other CA")
        cls.stranger = other.issue("stranger.pem", "stranger")

    answer = """
    http-request return status 200 content-type text/plain lf-string "used=%[ssl_c_used] verify=%[ssl_c_verify] cn=%[ssl_c_s_dn(cn)]"
"""

    def test_required(self):
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s verify required ca-file %s
""" % (self.ec, self.authority.ca) + self.answer)
        url = proxy.url("web", scheme="https")
        for version in ("1.2", "1.3"):
            with self.subTest(version):
                only = ["-k", "--tls-max", version]
                self.assertEqual(curl(*only, "--cert", self.good, url), "used=1 verify=0 cn=client")
                self.assertNotEqual(curl(*only, url, check=False).returncode, 0)
                self.assertNotEqual(curl(*only, "--cert", self.stranger, url, check=False).returncode, 0)

    def test_optional(self):
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %(ec)s verify optional ca-file %(ca)s
    bind 127.0.0.1:@lenient@ ssl crt %(ec)s verify optional ca-file %(ca)s crt-ignore-err all ca-ignore-err all
""" % {"ec": self.ec, "ca": self.authority.ca} + self.answer)
        url = proxy.url("web", scheme="https")
        self.assertEqual(curl("-k", "--cert", self.good, url), "used=1 verify=0 cn=client")
        self.assertEqual(curl("-k", url), "used=0 verify=0 cn=")
        self.assertNotEqual(curl("-k", "--cert", self.stranger, url, check=False).returncode, 0)
        out = curl("-k", "--cert", self.stranger, proxy.url("lenient", scheme="https"))
        self.assertRegex(out, r"^used=1 verify=[1-9]\d* cn=stranger$")

    def test_revoked(self):
        require("openssl")
        folder = self.path("revocation")
        os.mkdir(folder)
        revoked = self.issue("revoked.pem", "revoked")
        database = os.path.join(folder, "index")
        open(database, "w", encoding="ascii").close()
        config = os.path.join(folder, "conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("[ca]\ndefault_ca=c\n[c]\ndatabase=%s\ndefault_md=sha256\ndefault_crl_days=5\n" % database)
        signer = ["-config", config, "-keyfile", self.authority.key, "-cert", self.authority.ca]
        run("openssl", "ca", *signer, "-revoke", revoked)
        run("openssl", "ca", *signer, "-gencrl", "-out", folder + "/crl.pem")
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s verify required ca-file %s crl-file %s/crl.pem
""" % (self.ec, self.authority.ca, folder) + self.answer)
        url = proxy.url("web", scheme="https")
        self.assertEqual(curl("-k", "--cert", self.good, url), "used=1 verify=0 cn=client")
        self.assertNotEqual(curl("-k", "--cert", revoked, url, check=False).returncode, 0)


class Resumption(TlsCase):
    def reused(self, output):
        return len(re.findall(r"^Reused, TLS", output, re.MULTILINE))

    def test_session_cache_and_tickets_of_tls12(self):
        proxy = self.proxy("global\n    nbthread 2\n" + DEFAULTS + """
frontend web
    bind 127.0.0.1:@tickets@ ssl crt %(ec)s ssl-max-ver TLSv1.2
    bind 127.0.0.1:@cache@ ssl crt %(ec)s ssl-max-ver TLSv1.2 no-tls-tickets
""" % {"ec": self.ec} + ANSWER)
        out = s_client(proxy.ports["tickets"], "-reconnect", data="Q\n")
        self.assertEqual(self.reused(out), 5, out)
        self.assertIn("TLS session ticket:", out)
        # The cache is the process's: whichever worker gets the connection.
        out = s_client(proxy.ports["cache"], "-reconnect", data="Q\n")
        self.assertEqual(self.reused(out), 5, out)
        self.assertNotIn("TLS session ticket:", out)

    def test_no_cache_and_no_tickets_means_no_resumption(self):
        proxy = self.proxy("global\n    tune.ssl.cachesize 0\n" + DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s ssl-max-ver TLSv1.2 no-tls-tickets
""" % self.ec + ANSWER)
        self.assertEqual(self.reused(s_client(proxy.ports["web"], "-reconnect", data="Q\n")), 0)

    def test_tls13(self):
        proxy = self.proxy("global\n    nbthread 2\n" + DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %(ec)s
    bind 127.0.0.1:@cache@ ssl crt %(ec)s no-tls-tickets
""" % {"ec": self.ec} + ANSWER)
        for port in ("web", "cache"):
            with self.subTest(port):
                saved = self.path("session-" + port)
                context = ["-tls1_3", "-quiet", "-ign_eof"]
                out = s_client(proxy.ports[port], *context, "-sess_out", saved, data=REQUEST)
                self.assertIn("resumed=0", out)
                for _ in range(4):
                    out = s_client(proxy.ports[port], *context, "-sess_in", saved, data=REQUEST)
                    self.assertIn("resumed=1", out)

    def test_a_ticket_of_another_process_is_a_full_handshake(self):
        config = DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s
""" % self.ec + ANSWER
        saved = self.path("session")
        one = self.proxy(config, name="one")
        out = s_client(one.ports["web"], "-quiet", "-ign_eof", "-sess_out", saved, data=REQUEST)
        self.assertIn("resumed=0", out)
        two = self.proxy(config, name="two")
        out = s_client(two.ports["web"], "-quiet", "-ign_eof", "-sess_in", saved, data=REQUEST)
        self.assertIn("resumed=0", out)

    @ours_alone
    def test_a_session_does_not_cross_names(self):
        """HAProxy 2.6 does not hold this. Client certificates asked for by one name cannot be skipped by resuming at another."""
        self.write("list", "%s a.example\n%s [verify required ca-file %s] b.example\n"
                   % (self.ec, self.rsa, self.authority.ca))
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt-list @dir@/list
""" + ANSWER)
        saved = self.path("session")
        s_client(proxy.ports["web"], "-servername", "a.example", "-quiet", "-ign_eof", "-sess_out", saved,
                 data=REQUEST)
        out = s_client(proxy.ports["web"], "-servername", "b.example", "-quiet", "-ign_eof", "-sess_in", saved,
                       data=REQUEST, check=False)
        self.assertNotIn("200 OK", out)


class ToServers(TlsCase):
    """The proxy as a TLS client; the servers are frontends of the same process."""

    def start(self, servers, extra=""):
        return self.proxy(DEFAULTS + """
frontend inner
    bind 127.0.0.1:@inner@ ssl crt %(ec)s alpn http/1.1
    bind 127.0.0.1:@mutual@ ssl crt %(ec)s verify required ca-file %(ca)s
    http-request return status 200 content-type text/plain lf-string "sni=%%[ssl_fc_sni] alpn=%%[ssl_fc_alpn] cn=%%[ssl_c_s_dn(cn)] resumed=%%[ssl_fc_is_resumed] %%[ssl_fc_protocol]"
%(extra)s
frontend web
    bind 127.0.0.1:@web@
    use_backend %%[path,field(2,/)]
%(servers)s
""" % {"ec": self.ec, "ca": self.authority.ca, "extra": extra, "servers": "".join(
            "backend %s\n    retries 0\n    server s1 %s\n" % pair for pair in servers.items())})

    def test_verification(self):
        other = Authority(self.path("other"), "Other CA")
        ca = self.authority.ca
        proxy = self.start({
            "none": "127.0.0.1:@inner@ ssl verify none",
            "good": "127.0.0.1:@inner@ ssl verify required ca-file %s" % ca,
            "host": "127.0.0.1:@inner@ ssl verify required ca-file %s verifyhost a.example" % ca,
            "badhost": "127.0.0.1:@inner@ ssl verify required ca-file %s verifyhost b.example" % ca,
            "sni": "127.0.0.1:@inner@ ssl verify required ca-file %s sni str(a.example)" % ca,
            "badsni": "127.0.0.1:@inner@ ssl verify required ca-file %s sni str(b.example)" % ca,
            "badca": "127.0.0.1:@inner@ ssl verify required ca-file %s" % other.ca,
            "plain": "127.0.0.1:@web@ ssl verify none",
            "dynamic": "127.0.0.1:@inner@ ssl verify none sni req.hdr(host)",
            "alpn": "127.0.0.1:@inner@ ssl verify none alpn http/1.1",
            "old": "127.0.0.1:@inner@ ssl verify none ssl-max-ver TLSv1.2",
            "mutual": "127.0.0.1:@mutual@ ssl verify none crt %s" % self.ec,
            "nocert": "127.0.0.1:@mutual@ ssl verify none ssl-max-ver TLSv1.2",
        })
        expected = {
            "none": "sni= alpn= cn= resumed=0 TLSv1.3", "good": "sni= ", "host": "sni= ", "badhost": None,
            "sni": "sni=a.example ", "badsni": None, "badca": None, "plain": None, "dynamic": "sni=x.example ",
            "alpn": "alpn=http/1.1 ", "old": "TLSv1.2", "mutual": "cn=a.example ", "nocert": None,
        }
        for name, part in expected.items():
            with self.subTest(name):
                out = curl("-H", "Host: x.example", "-w", " %{http_code}", proxy.url("web", "/" + name))
                if part is None:
                    self.assertRegex(out, r" 50[23]$")
                else:
                    self.assertIn(part, out)
                    self.assertRegex(out, r" 200$")

    def test_sessions_are_resumed(self):
        proxy = self.proxy("global\n    nbthread 1\n" + DEFAULTS + """
frontend inner
    bind 127.0.0.1:@inner@ ssl crt %s
    http-request return status 200 content-type text/plain lf-string "%%[ssl_fc_is_resumed]"
listen web
    bind 127.0.0.1:@web@
    option httpclose
    server s1 127.0.0.1:@inner@ ssl verify none
""" % self.ec)
        answers = [curl(proxy.url("web")) for _ in range(5)]
        self.assertEqual(answers[0], "0")
        self.assertEqual(answers[1:], ["1"] * 4)

    def test_tls_on_both_sides_and_nginx_behind(self):
        port = free_port()
        inner = self.nginx(extra="listen 127.0.0.1:%d ssl; ssl_certificate %s; ssl_certificate_key %s;" % (
            port, self.rsa, self.rsa))
        content = os.urandom(1 << 20)
        inner.file("f", content)
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s
    default_backend app
backend app
    server s1 127.0.0.1:@tls@ ssl verify required ca-file %s check
""" % (self.ec, self.authority.ca), tls=port)
        self.assertEqual(curl("-k", proxy.url("web", "/f", scheme="https"), text=False), content)
        self.write("up", content)
        curl("-k", "-T", self.path("up"), proxy.url("web", "/stored", scheme="https"))
        self.assertEqual(inner.stored("stored"), content)


class Forwarding(TlsCase):
    def test_headers_about_the_connection(self):
        """What the inside learns about the outside."""
        server = self.server(serve_hello)
        proxy = self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@plain@
    bind 127.0.0.1:@tls@ ssl crt %s
    http-request set-header X-Forwarded-Proto https if { ssl_fc }
    http-request set-header X-Forwarded-Proto http unless { ssl_fc }
    http-request set-header X-Port %%[dst_port]
    http-request redirect scheme https if { path /secure } !{ ssl_fc }
    default_backend app
backend app
    server s1 127.0.0.1:@server@
""" % self.ec, server=server.port)
        curl(proxy.url("plain"))
        curl("-k", proxy.url("tls", scheme="https"))
        heads = [head.decode().lower() for head, _ in server.requests]
        self.assertIn("x-forwarded-proto: http\r\n", heads[0])
        self.assertIn("x-port: %d\r\n" % proxy.ports["plain"], heads[0])
        self.assertIn("x-forwarded-proto: https\r\n", heads[1])
        out = curl("-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", proxy.url("plain", "/secure"))
        self.assertRegex(out, "^302 https://127.0.0.1")

    def test_close_notify(self):
        """A connection that ends properly says so: no truncation can be mistaken for an end."""
        server = self.server(serve_hello)
        proxy = self.proxy(DEFAULTS + """
listen web
    bind 127.0.0.1:@web@ ssl crt %s
    server s1 127.0.0.1:@server@
""" % self.ec, server=server.port)
        with connect_tls(proxy.ports["web"]) as tls:
            tls.sendall(REQUEST.encode())
            data = b""
            while True:
                part = tls.recv(4096)  # raises SSLEOFError without close_notify
                if not part:
                    break
                data += part
            self.assertIn(b"hello", data)


if __name__ == "__main__":
    unittest.main()

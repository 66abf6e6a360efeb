"""
The machines that the kernel module is tested in: Debian's kernel in QEMU's software emulation, and user-mode Linux.

Nothing is installed and nothing needs root: the kernel's image is unpacked below build/kernel/, the modules are built
there, and both guests live in an initramfs.
"""

import os
import re
import shutil
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDER = os.path.join(ROOT, "build", "kernel")
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(ROOT, "build")

QEMU = "qemu-system-x86_64"
QEMU_SECONDS = 170
UML_SECONDS = 45
TOOL_SECONDS = 300

# What of the kernel's modules the guest has; modprobe finds what belongs together.
MODULE_FOLDERS = (
    "kernel/crypto",
    "kernel/arch/x86/crypto",
    "kernel/lib",
    "kernel/drivers/virtio",
    "kernel/drivers/crypto/virtio",
)


class Missing(Exception):
    """Something that this machine lacks, and how to get it."""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Missing("%s is not installed (tools/setup kernel)" % program)


def run(command, **options):
    """Runs a tool; its output is the error when it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=False, **options
    )
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stdout + done.stderr))
    return done.stdout


def headers_version():
    """The kernel that the headers of linux-headers-amd64 are for: "6.1.0-57-amd64"."""
    need("dpkg-query")
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Depends}", "linux-headers-amd64"],
        capture_output=True, text=True, check=False,
    )
    found = re.search(r"\blinux-headers-(\d\S*-amd64)\b", done.stdout)
    if not found:
        raise Missing("linux-headers-amd64 is not installed (tools/setup kernel)")
    version = found.group(1)
    if not os.path.exists(headers_folder(version) + "/Makefile"):
        raise Missing("linux-headers-%s is not installed (tools/setup kernel)" % version)
    return version


def headers_folder(version):
    return "/usr/src/linux-headers-" + version


def kernel_image(version):
    """The unpacked image package of the version; fetched when it is not there yet."""
    folder = os.path.join(FOLDER, "image-" + version)
    if not os.path.exists(os.path.join(folder, "boot", "vmlinuz-" + version)):
        need("apt-get", "dpkg")
        download_image(version, folder)
    return folder


def download_image(version, folder):
    packages = os.path.join(FOLDER, "packages")
    shutil.rmtree(packages, ignore_errors=True)
    os.makedirs(packages)
    # As root apt would fetch as another user, who may not write here.
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=", "download", "linux-image-" + version]
    try:
        run(command, cwd=packages)
    except RuntimeError as error:
        raise Missing("the kernel's image cannot be fetched: %s" % error) from error
    (package,) = os.listdir(packages)
    run(["dpkg", "-x", os.path.join(packages, package), folder])
    shutil.rmtree(packages)


def build_modules(version):
    """Both modules, without a warning: the folder that they are in."""
    folder = os.path.join(FOLDER, "modules-" + version)
    run(["make", "-C", os.path.join(ROOT, "kmod"), "KDIR=" + headers_folder(version), "OUT=" + folder,
         "KCFLAGS=-Werror"])
    return folder


def libraries(program):
    """The shared objects that a program loads, by ldd, with the loader itself."""
    return sorted(set(re.findall(r"(/\S+) \(0x", run(["ldd", program]))))


def copy(source, folder, target, mode=None):
    """Copies a file to the path `target` inside the folder."""
    path = os.path.join(folder, target.lstrip("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(source, path)
    if mode:
        os.chmod(path, mode)


def copy_program(program, folder):
    copy(program, folder, "bin/" + os.path.basename(program), 0o755)
    for library in libraries(program):
        copy(os.path.realpath(library), folder, library)


def base_root(name, programs):
    """A root file system with busybox and the programs."""
    need("busybox", "cpio")
    root = os.path.join(FOLDER, "root-" + name)
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("proc", "sys", "dev", "bin", "sbin", "modules"):
        os.makedirs(os.path.join(root, folder))
    busybox = shutil.which("busybox")
    if "statically linked" not in run([busybox]) and "not a dynamic executable" not in ldd_text(busybox):
        raise Missing("busybox-static is not installed (tools/setup kernel)")
    copy(busybox, root, "bin/busybox", 0o755)
    os.symlink("../bin/busybox", os.path.join(root, "sbin", "modprobe"))
    for program in programs:
        copy_program(program, root)
    return root


def ldd_text(program):
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def pack(root):
    """The root as an initramfs, beside it."""
    image = root + ".cpio"
    names = "\n".join(
        os.path.relpath(os.path.join(path, name), root)
        for path, folders, files in os.walk(root)
        for name in folders + files
    )
    with open(image, "wb") as file:
        subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"],
            cwd=root, input=names.encode(), stdout=file, check=True, timeout=TOOL_SECONDS,
        )
    return image


def qemu_root(version, image, modules, programs):
    need("depmod", "strip")
    root = base_root("qemu", programs)
    source = os.path.join(image, "lib/modules", version)
    target = os.path.join(root, "lib/modules", version)
    for folder in MODULE_FOLDERS:
        shutil.copytree(os.path.join(source, folder), os.path.join(target, folder))
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        copy(os.path.join(source, name), target, name)
    run(["depmod", "-b", root, version])
    for name in ("sallyport_crypto.ko", "sallyport_fakedev.ko"):
        path = os.path.join(root, "modules", name)
        run(["strip", "--strip-debug", "-o", path, os.path.join(modules, name)])
    # Where the program looks first: beside itself.
    os.symlink("/modules/sallyport_crypto.ko", os.path.join(root, "bin", "sallyport_crypto.ko"))
    copy(os.path.join(HERE, "guest_init"), root, "init", 0o755)
    copy(os.path.join(HERE, "guest_cases"), root, "cases")
    return root


def boot(name, command, seconds):
    """Runs a machine until it powers itself off: (console's text, whether it did so in time)."""
    console = os.path.join(FOLDER, name + ".console")
    with open(console, "wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            start_new_session=True, cwd=FOLDER,
        )
        try:
            process.wait(seconds)
            in_time = True
        except subprocess.TimeoutExpired:
            in_time = False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
            process.wait()
    with open(console, encoding="utf-8", errors="replace") as file:
        return file.read(), in_time


def boot_qemu(version, image, root):
    """(what the guest wrote, its console, whether it ended by itself)"""
    need(QEMU)
    results = os.path.join(FOLDER, "qemu.results")
    command = [
        QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "768", "-nodefaults",
        "-display", "none", "-monitor", "none", "-no-reboot",
        "-kernel", os.path.join(image, "boot", "vmlinuz-" + version), "-initrd", pack(root),
        "-append", "console=ttyS0 loglevel=5 oops=panic panic=-1",
        "-serial", "stdio", "-serial", "file:" + results,
        "-object", "cryptodev-backend-builtin,id=cd0,queues=1",
        "-device", "virtio-crypto-pci,cryptodev=cd0",
    ]
    console, in_time = boot("qemu", command, QEMU_SECONDS)
    with open(results, encoding="utf-8", errors="replace") as file:
        return file.read().replace("\r", ""), console, in_time


def uml_root(programs):
    root = base_root("uml", programs)
    copy(os.path.join(HERE, "guest_uml_init"), root, "init", 0o755)
    return root


def boot_uml(root):
    """(console, whether it ended by itself)"""
    need("linux.uml")
    command = ["linux.uml", "mem=256M", "initrd=" + pack(root), "con0=fd:0,fd:1", "con=null", "quiet", "loglevel=4"]
    text, in_time = boot("uml", command, UML_SECONDS)
    return text.replace("\r", ""), in_time

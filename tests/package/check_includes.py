"""Checks what the public headers include, themselves or through others: their own kind, SYCL, and the standard libraries.

    ninja -t deps | check_includes.py <prefix> <prefix of the SYCL runtime>
"""
import re
import sys

SYSTEM = re.compile(r"^/usr/(include/(c\+\+|x86_64-linux-gnu|aarch64-linux-gnu|linux|asm-generic|bits|sys|gnu|rpc|llvm[^/]*)/|"
                    r"lib/(gcc|llvm[^/]*|clang)|lib/x86_64-linux-gnu/)")
# Plain files in /usr/include are the C library's but for what other packages put there.
PLAIN = re.compile(r"^/usr/include/[a-z0-9_-]+\.h$")
FOREIGN = re.compile(r"/(nlohmann|fmt|CLI|doctest|oneapi/mkl|openblas)/|/(zip|zipconf|archive|archive_entry|jpeglib|jconfig|jmorecfg|png|pngconf|"
                     r"pnglibconf|zlib|zconf|cblas|mkl\w*)\.h$")


def main(prefix, sycl):
    strangers = set()
    seen = 0
    for line in sys.stdin:
        path = line.strip()
        if not line.startswith(" ") or path.endswith((".c", ".cpp")):
            continue
        seen += 1
        own = path.startswith(f"{prefix}/include/sylvit/") or (sycl and path.startswith(f"{sycl}/include/"))
        known = own or SYSTEM.match(path) or PLAIN.match(path)
        if FOREIGN.search(path) or not known:
            strangers.add(path)
    for path in sorted(strangers)[:20]:
        print(f"check_includes: a public header includes {path}", file=sys.stderr)
    if seen < 100:
        print("check_includes: there are no dependencies to look at", file=sys.stderr)
        return 1
    return 1 if strangers else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

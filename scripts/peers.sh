#!/bin/bash
# peers.sh [DIR] - the environment that benchmarks are compared in: PyTorch, JAX and numpy in a virtual environment (default
# build/peers). It downloads about 750 MB from PyPI and takes about 2.5 GB; nothing of phrun depends on it.
#
# PyPI's PyTorch for Linux is the one for CUDA, whose libraries are 3 GB more. They are never called on a CPU but must be
# there when torch is loaded: the small CUDA runtime is installed, and in place of the others stand empty libraries with the
# names that torch looks up, made here.
set -eu
cd "$(dirname "$0")/.."
dir=${1:-build/peers}
python=$dir/bin/python

say() { echo "peers: $*" >&2; }

working() { "$python" -c 'import torch, jax, numpy' >/dev/null 2>&1; }

# version_of LIB NAME: the symbol version under which torch's libraries look things up in library NAME, if any.
version_of() {
  readelf -V --wide "$1"/lib*torch*.so | awk -v file="$2" '
    /File: / { here = $5 == file } here && /Name: / { for (i = 1; i < NF; i++) if ($i == "Name:") print $(i + 1) }' | sort -u
}

# wanted LIB NAME VERSION: symbols that library NAME must have: those of its version, or of its family where it has none.
wanted() {
  local family=${2#lib}
  family=${family%%.so*}
  nm -D --undefined-only "$1"/lib*torch*.so | awk -v version="$3" -v family="^${family/cufile/cuFile}" '
    $1 == "U" { n = split($2, part, "@"); if (version != "" ? part[n] == version : n == 1 && part[1] ~ family) print part[1] }' | sort -u
}

# make_stubs LIB: one empty library for each name on standard input.
make_stubs() {
  local lib=$1 name version
  while read -r name; do
    version=$(version_of "$lib" "$name")
    echo "${version:-stub} { global: *; };" >"$lib/stub.map"
    wanted "$lib" "$name" "$version" | sed 's/.*/void &(void) { __builtin_trap(); }/' >"$lib/stub.c"
    cc -w -shared -fPIC -Wl,-soname,"$name" ${version:+-Wl,--version-script,"$lib/stub.map"} -o "$lib/$name" "$lib/stub.c"
    rm "$lib/stub.c" "$lib/stub.map"
  done
}

# Names of libraries that torch wants and neither it nor the runtime brings.
missing() {
  local lib=$1 need
  for need in $(readelf -d "$lib"/lib*torch*.so |
    sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -E '^lib(cu|nccl|nv)' | sort -u); do
    [ -e "$lib/$need" ] || echo "$need"
  done
}

if [ -x "$python" ] && working; then
  say "$dir is there"
  exit 0
fi
say "making $dir (about 750 MB are downloaded)"
python3 -m venv "$dir"
"$dir/bin/pip" install -q --disable-pip-version-check 'setuptools>=77' filelock typing-extensions sympy networkx jinja2 fsspec numpy scipy jax h5py
"$dir/bin/pip" install -q --disable-pip-version-check --no-deps torch nvidia-cuda-runtime
lib=$(echo "$dir"/lib/python3.*/site-packages/torch/lib)
runtime=$(find "$dir"/lib/python3.*/site-packages/nvidia -name 'libcudart.so.*' | head -n 1)
[ -z "$runtime" ] || cp "$runtime" "$lib/"
missing "$lib" | make_stubs "$lib"
working || { "$python" -c 'import torch, jax, numpy' 2>&1 | tail -n 1; say "the environment does not work"; exit 1; }
"$python" -c 'import torch, jax, numpy; print("peers: torch", torch.__version__, "jax", jax.__version__, "numpy", numpy.__version__)' >&2

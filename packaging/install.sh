#!/bin/sh
# Installs the command `attache`: downloads the archive for this machine, compares its SHA-256 with the list of the release, and
# puts the program into ~/.local/bin. It writes nowhere else, and asks for no rights that you do not have.
#
#     curl -fsSL @REPOSITORY@/releases/latest/download/install.sh | sh
#     sh install.sh [--version VERSION] [--to DIR] [--from URL|DIR]
#
# All of it is in functions, so that a script which arrives in part does nothing.
set -eu

repository='@REPOSITORY@'
version='@VERSION@'
to=
from=
scratch=
new=

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

usage() {
    cat <<'END'
Installs the command `attache` for the user who runs this.

Usage: install.sh [--version VERSION] [--to DIR] [--from URL|DIR]

  --version VERSION  this version instead of the one that the script came with
  --to DIR           the directory for the program [default: ~/.local/bin]
  --from URL|DIR     where the archive and SHA256SUMS are [default: the release's own page]
END
}

clean() {
    [ -z "$scratch" ] || rm -rf "$scratch"
    [ -z "$new" ] || rm -f "$new"
}

arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
        --version=* | --to=* | --from=*)
            option=${1%%=*}
            value=${1#*=}
            ;;
        --version | --to | --from)
            option=$1
            [ $# -ge 2 ] || fail "missing value for $1"
            value=$2
            shift
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) fail "unknown argument \`$1\`" "\`--help\` lists what there is" ;;
        esac
        [ -n "$value" ] || fail "missing value for $option"
        case $option in
        --version) version=${value#v} ;;
        --to) to=$value ;;
        --from) from=$value ;;
        esac
        shift
    done
    # A template that was not filled knows neither.
    case $version in
    @*) fail "this copy of the script knows no version" "name one with --version" ;;
    */* | *[[:space:]]*) fail "invalid version \`$version\`" ;;
    esac
    if [ -z "$from" ]; then
        case $repository in
        https://*) from=$repository/releases/download/v$version ;;
        *) fail "this copy of the script does not know where releases are" "name the place with --from" ;;
        esac
    fi
    if [ -z "$to" ]; then
        [ -n "${HOME:-}" ] || fail "HOME is not set" "name a directory with --to"
        to=$HOME/.local/bin
    fi
}

platform() {
    system=$(uname -s)
    machine=$(uname -m)
    # A shell that macOS translates takes its machine for another.
    if [ "$system" = Darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || :)" = 1 ]; then
        machine=arm64
    fi
    case $system/$machine in
    Linux/x86_64 | Linux/amd64) target=x86_64-unknown-linux-musl ;;
    Linux/aarch64 | Linux/arm64) target=aarch64-unknown-linux-musl ;;
    Darwin/x86_64) target=x86_64-apple-darwin ;;
    Darwin/arm64 | Darwin/aarch64) target=aarch64-apple-darwin ;;
    *) fail "there is no program for $system on $machine" "build it from its source: $repository" ;;
    esac
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Fetches a file by its name.
fetch() {
    case $from in
    https://*) encrypted=1 ;;
    http://*) encrypted= ;;
    *)
        [ -f "$from/$1" ] || fail "no \`$1\` in $from"
        cp "$from/$1" "$scratch/$1" || fail "cannot copy $from/$1"
        return
        ;;
    esac
    url=${from%/}/$1
    if has curl; then
        # What begins encrypted stays so, wherever it is redirected to.
        curl ${encrypted:+--proto =https --tlsv1.2} --fail --silent --show-error --location --output "$scratch/$1" "$url"
    elif has wget; then
        tries=
        ! wget --help 2>&1 | grep -q -e --tries || tries=--tries=2
        wget -q ${tries:+"$tries"} -O "$scratch/$1" "$url"
    else
        fail "neither curl nor wget is installed"
    fi || fail "cannot download $url"
}

sha256() {
    if has sha256sum; then
        sha256sum <"$1"
    elif has shasum; then
        shasum -a 256 <"$1"
    elif has openssl; then
        openssl dgst -sha256 -r <"$1"
    else
        fail "none of sha256sum, shasum and openssl is installed, so the download cannot be verified"
    fi | cut -d ' ' -f 1
}

main() {
    arguments "$@"
    platform
    trap clean EXIT
    trap 'exit 130' INT
    trap 'exit 143' HUP TERM
    mkdir -p "$to" 2>/dev/null || fail "cannot create $to" "choose another directory with --to"
    [ ! -d "$to/attache" ] || fail "$to/attache is a directory" "choose another directory with --to"
    new=$to/.attache.$$
    (: >"$new") 2>/dev/null || fail "cannot write to $to" "choose another directory with --to"
    scratch=$(mktemp -d) || fail "cannot create a temporary directory"

    archive=attache-$version-$target.tar.gz
    printf 'Downloading %s\n' "$archive" >&2
    fetch SHA256SUMS
    expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$scratch/SHA256SUMS")
    [ ${#expected} -eq 64 ] || fail "SHA256SUMS does not list $archive"
    fetch "$archive"
    found=$(sha256 "$scratch/$archive")
    [ "$found" = "$expected" ] ||
        fail "wrong checksum of $archive: expected $expected, found ${found:-none}; nothing was installed"

    program=attache-$target/attache
    tar -xzf "$scratch/$archive" -C "$scratch" "$program" || fail "cannot unpack $archive"
    cp "$scratch/$program" "$new" || fail "cannot write to $to"
    chmod 755 "$new"
    said=$("$new" --version </dev/null) || fail "the program does not run on this machine; nothing was installed"
    # A program that is running can be replaced, but not overwritten.
    mv -f "$new" "$to/attache" || fail "cannot replace $to/attache"
    printf 'Installed %s in %s\n' "$said" "$to" >&2
    case :${PATH:-}: in
    *":$to:"*) ;;
    *) printf 'hint: %s is not in PATH\n' "$to" >&2 ;;
    esac
}

main "$@"

# Installs Attaché with Homebrew, from the archives of its releases.
class Attache < Formula
  desc "Agent Client Protocol (ACP): a coding agent, and a client for all agents"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/attache-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/attache-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/attache-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/attache-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "attache"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/attache.bash" => "attache"
    zsh_completion.install "completions/_attache"
    fish_completion.install "completions/attache.fish"
    doc.install "README.md", "THIRD-PARTY-LICENSES.txt", "sbom.cdx.json"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/attache --version")
  end
end

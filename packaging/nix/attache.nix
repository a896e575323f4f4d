# Attaché for Nix, from the archives of its releases: `nix-env -if attache.nix`, or `pkgs.callPackage ./attache.nix { }`.
{ pkgs ? import <nixpkgs> { }
, lib ? pkgs.lib
, stdenvNoCC ? pkgs.stdenvNoCC
, fetchurl ? pkgs.fetchurl
, installShellFiles ? pkgs.installShellFiles
}:

let
  version = "@VERSION@";
  archives = {
    x86_64-linux = {
      triple = "x86_64-unknown-linux-musl";
      sha256 = "@SHA256:x86_64-unknown-linux-musl@";
    };
    aarch64-linux = {
      triple = "aarch64-unknown-linux-musl";
      sha256 = "@SHA256:aarch64-unknown-linux-musl@";
    };
    x86_64-darwin = {
      triple = "x86_64-apple-darwin";
      sha256 = "@SHA256:x86_64-apple-darwin@";
    };
    aarch64-darwin = {
      triple = "aarch64-apple-darwin";
      sha256 = "@SHA256:aarch64-apple-darwin@";
    };
  };
  system = stdenvNoCC.hostPlatform.system;
  archive = archives.${system} or (throw "attache has no archive for ${system}");
in
stdenvNoCC.mkDerivation {
  pname = "attache";
  inherit version;

  src = fetchurl {
    url = "@REPOSITORY@/releases/download/v${version}/attache-${version}-${archive.triple}.tar.gz";
    inherit (archive) sha256;
  };

  nativeBuildInputs = [ installShellFiles ];
  dontConfigure = true;
  dontBuild = true;

  installPhase = ''
    runHook preInstall
    install -D -m 755 attache $out/bin/attache
    install -D -m 644 -t $out/share/doc/attache README.md LICENSE THIRD-PARTY-LICENSES.txt sbom.cdx.json
    installManPage man/*.1
    installShellCompletion --bash --name attache completions/attache.bash
    installShellCompletion --zsh --name _attache completions/_attache
    installShellCompletion --fish --name attache.fish completions/attache.fish
    runHook postInstall
  '';

  meta = {
    description = "Agent Client Protocol (ACP): a coding agent, and a client for all agents";
    homepage = "@REPOSITORY@";
    license = lib.licenses.asl20;
    mainProgram = "attache";
    platforms = builtins.attrNames archives;
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}

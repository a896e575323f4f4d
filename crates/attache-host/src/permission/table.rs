//! Commands that are known well enough to be allowed with more than the words of a rule: a row for each.
//!
//! A row says which options and operands are harmless: with them the command does no more than its own words promise. It
//! runs no other program, writes no other place, and reaches no other repository, host or settings than the command does
//! without them. What is not in the row is not known to be harmless, and is asked about. Shorter forms of long options are
//! not in it. To add an option, read what the program does with it, with any value.
//!
//! `docs/commands.md` is made from these rows; `arguments.rs` reads commands with them.
//!
//! Options are written as programs have them, with a blank between:
//!
//! - `-v`, `--verbose`: without a value. Short ones may stand together, as in `-la`;
//! - `-n:`, `--depth:`: with a value, glued to it or as the next word;
//! - `-U::`, `--color::`: with or without a value, which is glued to it;
//! - `-Dtest=`: with a value after `=` and in no other way;
//! - `-#`: a number, as in `-20`;
//! - after `--` come the options that may stand behind a `--` of the command, where they are for another program.
//!
//! Without that, a `--` may stand before operands, but none of them begins with `-`: not every program ends its options
//! there. In rows with options of several letters after one dash there is no `--` at all: `find` goes on reading them.
//!
//! A value is any text, or what stands after the sign: `path` (a path of the session that is read), `out` (one that is
//! written), `word` (letters, digits, `-` and `_`), `name` (the same with `.`, `/`, `:`…, as in names of packages),
//! `number`, `sed` (a script that only prints). In a row with options of several letters after one dash, as `find` has them, or with `words` among
//! the options, nothing stands together and nothing is glued.

use self::Effect::{Deletes, Network, Reads, Runs, Writes};
use self::Operands::{
    Anything, Archive, Awk, Changed, Files, Format, Jq, Mode, Names, Nothing, OnePath, Packages, Paths,
    PatternThenPaths, Printf, Remote, Sed, Text,
};

/// One command that is known.
#[derive(Debug)]
pub(super) struct Row {
    /// The words that it begins with. `*` is one word that the rule has to name, such as a target of `make`.
    pub(super) command: &'static str,
    /// What it does at most.
    pub(super) effect: Effect,
    /// The harmless options.
    pub(super) options: &'static [&'static str],
    /// The harmless operands.
    pub(super) operands: Operands,
    /// Why that is all, in a sentence.
    pub(super) reason: &'static str,
}

impl Row {
    /// Whether it changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        self.effect == Reads
    }

    /// Whether it changes the files that its words name: a rule that is suggested for it names them too.
    pub(super) fn changes_what_it_names(&self) -> bool {
        self.effect == Deletes || matches!(self.operands, Changed | Mode)
    }
}

/// What a command does at most, apart from using time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes nothing, and the project has no say in what it runs: a rule for the program alone allows it.
    Reads,
    /// It changes files of the session or its repository.
    Writes,
    /// It takes files away.
    Deletes,
    /// It runs code of the project, as building and testing do.
    Runs,
    /// It talks to a host that the project or the person has set up.
    Network,
}

/// Which words a command may have that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// None.
    Nothing,
    /// Any words at all, also those that look like options.
    Anything,
    /// Any text.
    Text,
    /// A format for `printf` that stores nothing, then any text; numbers only where it counts.
    Printf,
    /// Paths of the session that hold no secrets, or anything else that is none, such as a revision.
    Paths,
    /// Paths of the session that hold no secrets and that decide nothing about what other programs run.
    Changed,
    /// Paths that lead to no directories: what is in one may be a link that leads elsewhere.
    Files,
    /// At most one path: a second one would be written.
    OnePath,
    /// An archive as the very next word, because the row ends in an option that takes it, then paths in it. Nothing with
    /// `:`, which would name a host.
    Archive,
    /// A pattern, unless an option had it already, then paths.
    PatternThenPaths,
    /// Names of packages, targets, branches: no address, no path from the top, no `=`.
    Names,
    /// Names of packages in a registry, none of repositories.
    Packages,
    /// A remote by its name, then branches; nothing with `+` or `:`.
    Remote,
    /// A format that begins with `+`.
    Format,
    /// A mode, then paths that are changed.
    Mode,
    /// A script for `sed` that only prints, deletes and replaces lines, then paths.
    Sed,
    /// A program for `awk` without redirections and without other programs, then paths.
    Awk,
    /// A filter for `jq` that reads no module and no variables, then paths.
    Jq,
}

const fn row(
    command: &'static str,
    effect: Effect,
    options: &'static [&'static str],
    operands: Operands,
    reason: &'static str,
) -> Row {
    Row { command, effect, options, operands, reason }
}

/// Other names of programs: the rows are those of the second.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("./gradlew", "gradle"),
    ("./mvnw", "mvn"),
    ("egrep", "grep"),
    ("fdfind", "fd"),
    ("fgrep", "grep"),
    ("gawk", "awk"),
    ("gmake", "make"),
    ("gsed", "sed"),
    ("gtar", "tar"),
    ("mawk", "awk"),
    ("pip3", "pip"),
    ("podman", "docker"),
    ("python3", "python"),
];

/// Options before the subcommand that change nothing but how output is shown.
pub(super) const LEADING: &[(&str, &[&str])] = &[("git", &["--no-pager", "-P", "--no-optional-locks"])];

// What options many commands share.

const GIT_DIFF: &str = "-p -u --patch -s --no-patch -U::number --unified::number --raw --patch-with-raw --minimal --patience --histogram \
    --anchored: --diff-algorithm: --stat:: --compact-summary --numstat --shortstat --dirstat:: --cumulative --summary \
    --patch-with-stat -z --name-only --name-status --submodule:: --color:: --no-color --color-moved:: --word-diff:: \
    --word-diff-regex: --color-words:: --no-renames --check --full-index --binary --abbrev:: -B:: -M:: --find-renames:: \
    -C:: --find-copies:: --find-copies-harder -D -l: --diff-filter: -S: -G: --pickaxe-all --pickaxe-regex -R \
    --relative:: -a --text --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space \
    --ignore-blank-lines -I: --inter-hunk-context: -W --function-context --exit-code --quiet --no-ext-diff \
    --no-textconv --src-prefix: --dst-prefix: --no-prefix --line-prefix: --no-color-moved --stat-width: --no-indent-heuristic";
const GIT_LOG: &str = "-# -n: --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: \
    --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F --fixed-strings -P --perl-regexp --merges \
    --no-merges --first-parent --all --branches:: --tags:: --remotes:: --reflog -g --walk-reflogs --oneline --graph \
    --no-graph --decorate:: --no-decorate --source --pretty:: --format= --abbrev-commit --no-abbrev-commit --date: \
    --relative-date --reverse --topo-order --date-order --author-date-order --follow --full-diff --log-size -L: -c --cc -m \
    --boundary --left-right --cherry --cherry-pick --cherry-mark --no-notes --left-only --right-only --simplify-by-decoration \
    --full-history --ancestry-path --no-walk:: --no-mailmap";
const CARGO: &str = "-p: --package: --workspace --all --exclude: --lib --bins --bin: --examples --example: --tests --test: \
    --benches --bench: --all-targets -F: --features: --all-features --no-default-features -r --release --profile:word -j: \
    --jobs: --keep-going --message-format: -v --verbose -q --quiet --color: --locked --offline --frozen --target:word \
    --manifest-path:path --ignore-rust-version";
const LIBTEST: &str = "-- --nocapture --no-capture --show-output --exact --ignored --include-ignored --list --skip: \
    --test-threads: --color: -q --quiet --format:word --test --bench";
const PYTEST: &str = "-q -v -x -s -l -k: -m: -r: -n:word --quiet --verbose --exitfirst --maxfail: --lf --last-failed --ff \
    --failed-first --nf --new-first --sw --stepwise --tb: --durations: --co --collect-only --no-header --no-summary --color: \
    --disable-warnings --strict-markers --strict-config --capture: --no-cov --cov::path --cov-report:word --markers \
    --fixtures --version --runxfail --showlocals --verbosity: --numprocesses:word --cov-branch --timeout:";
const RUFF: &str = "-q --quiet -v --verbose -s --silent --output-format:word --select: --ignore: --extend-select: \
    --statistics --diff --no-cache -n --exit-zero --exit-non-zero-on-fix --preview --no-preview --show-fixes --no-fix \
    --respect-gitignore --force-exclude -e --show-settings --target-version:word --line-length:number";
const GO_BUILD: &str = "-v -n -x -race -msan -asan -tags: -p: -trimpath -mod:word -buildvcs=word -a -work";
const GO_TEST: &str = "-run: -bench: -benchmem -benchtime: -count: -short -cover -covermode:word -coverprofile:out -timeout: \
    -failfast -json -parallel: -cpu: -list: -shuffle: -skip: -vet=word -fuzztime:";
const NPM: &str = "words -s --silent -q --quiet --if-present --no-color --no-audit --no-fund --no-progress --loglevel:word \
    --offline --prefer-offline --ignore-scripts";
const JEST: &str = "words -t: --testNamePattern: --coverage --no-coverage --ci --runInBand -i --verbose --silent --no-cache --bail:: -b \
    --maxWorkers: --passWithNoTests --listTests --onlyFailures --onlyChanged --detectOpenHandles --forceExit \
    --testTimeout: --watch=word --watchAll=word --watchman=word --no-watchman --errorOnDeprecated --color --no-color --expand \
    --findRelatedTests --testPathPattern: --testPathPatterns: --testPathIgnorePatterns:";
const DOTNET: &str = "words -c:word --configuration:word --no-restore --no-build --no-incremental -v:word --verbosity:word --nologo \
    --no-dependencies -f:name --framework:name -r:word --runtime:word --tl";
const MVN: &str = "-q -B -o -e -X -U -ntp -T: -pl: -am --quiet --batch-mode --offline --errors --no-transfer-progress \
    -DskipTests -Dmaven.test.skip=word -Dtest=name -fae -ff --fail-at-end --fail-fast --also-make";
const GRADLE: &str = "-q --quiet -i --info -w --warn -s --stacktrace --offline --continue --no-daemon --parallel --tests: \
    --rerun-tasks --no-build-cache --build-cache --console:word --warning-mode:word --no-configuration-cache";
const GREP_LINES: &str = "-n -i -v -w -x -c -l -L -o -q -s -h -H -E -F -P -a -A: -B: -C: -m: -e:";

/// All rows. Those of one program stand together.
pub(super) const ROWS: &[Row] = &[
    // git, reading.
    row(
        "git status",
        Reads,
        &["-s --short -b --branch --show-stash --porcelain:: --long -v --verbose -u:: \
        --untracked-files:: --ignored:: --ignore-submodules:: -z --column:: --no-column --ahead-behind --no-ahead-behind \
        --renames --no-renames --find-renames::"],
        Paths,
        "Shows which files have changed.",
    ),
    row(
        "git diff",
        Reads,
        &[GIT_DIFF, "--cached --staged --merge-base --ours --theirs -0 -1 -2 -3 --base"],
        Paths,
        "Shows changes; without `--no-index` and with paths of the session it reads the repository only.",
    ),
    row("git log", Reads, &[GIT_LOG, GIT_DIFF], Paths, "Shows commits."),
    row("git show", Reads, &[GIT_LOG, GIT_DIFF], Paths, "Shows commits and files of them."),
    row("git whatchanged", Reads, &[GIT_LOG, GIT_DIFF], Paths, "Shows commits with their changes."),
    row("git reflog", Reads, &[GIT_LOG], Nothing, "Shows where branches were; its subcommands are not in the row."),
    row("git reflog show", Reads, &[GIT_LOG], Paths, "Shows where branches were."),
    row(
        "git shortlog",
        Reads,
        &["-s -n -e -c --summary --numbered --email --all --since: --until: --no-merges --group:"],
        Paths,
        "Counts commits.",
    ),
    row(
        "git blame",
        Reads,
        &["-L: -w -s -e -l -t -f -n -p -b -c -M:: -C:: --porcelain --line-porcelain --date: --since: \
        --show-email --show-name --show-number --first-parent --root --abbrev::number --color-lines --color-by-age"],
        Paths,
        "Shows who wrote which line.",
    ),
    row("git annotate", Reads, &["-L: -w -l -t"], Paths, "Shows who wrote which line."),
    row(
        "git grep",
        Reads,
        &[
            GREP_LINES,
            "-r --cached --untracked -I --text --count --name-only --files-with-matches \
        --line-number --ignore-case --word-regexp --heading --break -W -p --show-function --function-context --max-depth: \
        --and --or --not --all-match --color:: --no-color --max-count: --column -z -#",
        ],
        PatternThenPaths,
        "Searches tracked files; without the options that open a pager.",
    ),
    row(
        "git rev-parse",
        Reads,
        &["--abbrev-ref:: --short:: --verify -q --quiet --show-toplevel --git-dir --absolute-git-dir \
        --git-common-dir --show-prefix --show-cdup --is-inside-work-tree --is-bare-repository --is-inside-git-dir \
        --is-shallow-repository --symbolic --symbolic-full-name --all --branches:: --tags:: --remotes:: --local-env-vars \
        --revs-only --no-revs --show-superproject-working-tree"],
        Paths,
        "Says what names stand for.",
    ),
    row("git rev-list", Reads, &[GIT_LOG, "--count --objects --disk-usage"], Paths, "Lists commits."),
    row(
        "git ls-files",
        Reads,
        &["-c -d -m -o -s -u -k -t -v -z --cached --deleted --modified --others --stage --unmerged \
        --exclude-standard --directory --no-empty-directory --error-unmatch --full-name --abbrev:: --eol --deduplicate \
        -x: --exclude:"],
        Paths,
        "Lists files.",
    ),
    row(
        "git ls-tree",
        Reads,
        &["-r -d -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev::"],
        Paths,
        "Lists files of a commit.",
    ),
    row("git cat-file", Reads, &["-p -t -s -e"], Paths, "Shows one object; the options that convert it run programs."),
    row(
        "git describe",
        Reads,
        &["--tags --all --always --long --dirty:: --abbrev::number --match: --exclude: --exact-match \
        --contains --first-parent --candidates:"],
        Paths,
        "Names a commit.",
    ),
    row("git name-rev", Reads, &["--tags --name-only --always --refs:"], Paths, "Names a commit."),
    row(
        "git merge-base",
        Reads,
        &["-a --all --octopus --is-ancestor --independent --fork-point"],
        Paths,
        "Finds where branches parted.",
    ),
    row(
        "git for-each-ref",
        Reads,
        &["--count: --sort: --format: --points-at: --merged:: --no-merged:: --contains:: \
        --no-contains:: --ignore-case --color::"],
        Paths,
        "Lists branches and tags.",
    ),
    row(
        "git show-ref",
        Reads,
        &["--head --heads --branches --tags -d --dereference -s --hash:: --verify -q --quiet --abbrev::"],
        Paths,
        "Lists branches and tags.",
    ),
    row(
        "git branch",
        Reads,
        &["-a -r -v -i --all --remotes --verbose --list --show-current --contains: --no-contains: \
        --merged:: --no-merged:: --points-at: --sort: --format: --column:: --no-column --color:: --no-color --abbrev::number \
        --no-abbrev --ignore-case -l"],
        Nothing,
        "Lists branches; with a name it would make one, and `-D` deletes.",
    ),
    row(
        "git branch --list",
        Reads,
        &["-a -r -v -i --all --remotes --sort: --format: --color:: --no-color"],
        Text,
        "Lists branches that fit patterns.",
    ),
    row(
        "git tag",
        Reads,
        &["-l --list -n:: --sort: --format: --contains: --no-contains: --merged:: --no-merged:: \
        --points-at: --column:: --color::"],
        Nothing,
        "Lists tags; with a name it would make one.",
    ),
    row("git tag --list", Reads, &["-n:: --sort: --format:"], Text, "Lists tags that fit patterns."),
    row("git tag -l", Reads, &["-n:: --sort: --format:"], Text, "Lists tags that fit patterns."),
    row("git remote", Reads, &["-v --verbose"], Nothing, "Lists remotes; its other subcommands change them."),
    row("git remote get-url", Reads, &["--push --all"], Names, "Shows the address of a remote."),
    row(
        "git stash list",
        Reads,
        &["-# -n: --oneline --stat:: -p --format= --date:"],
        Nothing,
        "Lists what was put aside.",
    ),
    row(
        "git stash show",
        Reads,
        &[GIT_DIFF, "--include-untracked -u --only-untracked"],
        Names,
        "Shows what was put aside.",
    ),
    row("git worktree list", Reads, &["-v --verbose --porcelain -z"], Nothing, "Lists work trees."),
    row(
        "git config --get",
        Reads,
        &["--local --global --system --worktree --type:word --bool --int --path -z --null \
        --show-origin --show-scope --default:"],
        Names,
        "Shows one setting; without `--get` it would set one.",
    ),
    row(
        "git config get",
        Reads,
        &["--local --global --system --worktree --type:word -z --null --show-origin --show-scope \
        --default:"],
        Names,
        "Shows one setting.",
    ),
    row(
        "git diff-tree",
        Reads,
        &[GIT_DIFF, "-r -t --root --no-commit-id --stdin -m -c --cc --pretty:: --format= -v"],
        Paths,
        "Shows changes between trees.",
    ),
    row("git diff-index", Reads, &[GIT_DIFF, "--cached -m --merge-base"], Paths, "Shows changes against a tree."),
    row("git diff-files", Reads, &[GIT_DIFF], Paths, "Shows changes that are not staged."),
    row(
        "git range-diff",
        Reads,
        &["--creation-factor: --left-only --right-only --stat:: --no-color --color:: -s"],
        Paths,
        "Shows what differs between two series of commits.",
    ),
    row("git cherry", Reads, &["-v --abbrev::"], Paths, "Lists commits that are not upstream."),
    row(
        "git check-ignore",
        Reads,
        &["-q -v -n --quiet --verbose --non-matching --no-index"],
        Paths,
        "Says which paths are ignored.",
    ),
    row("git check-attr", Reads, &["-a --all --cached"], Paths, "Shows attributes of paths."),
    row("git count-objects", Reads, &["-v -H --verbose --human-readable"], Nothing, "Counts objects."),
    row(
        "git submodule status",
        Reads,
        &["--cached --recursive"],
        Paths,
        "Lists submodules; `foreach` would run commands in them.",
    ),
    row("git clean -n", Reads, &["-d -x -X -n -e: --dry-run"], Paths, "Lists what cleaning would delete."),
    row("git clean --dry-run", Reads, &["-d -x -X -n -e: --dry-run"], Paths, "Lists what cleaning would delete."),
    row("git version", Reads, &["--build-options"], Nothing, "Shows the version."),
    row("git --version", Reads, &[], Nothing, "Shows the version."),
    // git, changing the repository.
    row(
        "git add",
        Writes,
        &["-A -u -v -n -N -f --all --update --verbose --dry-run --intent-to-add --no-all --ignore-removal \
        --refresh --ignore-errors --renormalize --chmod:word"],
        Paths,
        "Stages files.",
    ),
    row(
        "git commit",
        Writes,
        &["-m: -a -q -v --message: --all --quiet --allow-empty --allow-empty-message -s --signoff \
        --no-edit --dry-run --short --branch --porcelain --long -F:path --file:path --fixup: --squash: --no-gpg-sign \
        --cleanup:word -o --only -i --include -u:: --status --no-status"],
        Paths,
        "Records what is staged; changing the last commit and passing by the hooks are not in the row.",
    ),
    row(
        "git restore",
        Writes,
        &["--staged -S --worktree -W -q --quiet --source: -s: --ours --theirs --progress --no-progress"],
        Changed,
        "Brings files back, which loses what was changed in them.",
    ),
    row(
        "git checkout",
        Writes,
        &["-b: -q -t --quiet --track:: --no-track --progress --no-progress --guess --no-guess --detach \
        --ours --theirs --orphan:"],
        Changed,
        "Switches branches or brings files back, which loses what was changed in them.",
    ),
    row(
        "git switch",
        Writes,
        &["-c: --create: -q --quiet -t --track:: --no-track -d --detach --guess --no-guess --orphan: \
        --progress --no-progress"],
        Names,
        "Switches branches; refuses where changes would be lost.",
    ),
    row(
        "git stash",
        Writes,
        &["-q -u -k -a -S --quiet --include-untracked --keep-index --no-keep-index --all --staged"],
        Nothing,
        "Puts changes aside; its subcommands are not in the row.",
    ),
    row(
        "git stash push",
        Writes,
        &["-q -u -k -a -S -m: --quiet --message: --include-untracked --keep-index --no-keep-index \
        --all --staged"],
        Paths,
        "Puts changes aside.",
    ),
    row("git stash pop", Writes, &["-q --quiet --index"], Names, "Brings back what was put aside."),
    row("git stash apply", Writes, &["-q --quiet --index"], Names, "Brings back what was put aside."),
    row("git mv", Writes, &["-v -n -k --verbose --dry-run"], Changed, "Moves tracked files."),
    row(
        "git rm",
        Deletes,
        &["-q -n -r --cached --quiet --dry-run --ignore-unmatch"],
        Changed,
        "Takes tracked files away; git keeps those with changes.",
    ),
    row(
        "git merge",
        Writes,
        &["-m: -q -n --no-edit --ff --no-ff --ff-only --squash --no-commit --commit --abort --continue \
        --quit --stat --no-stat --quiet --no-progress --log:: --no-log"],
        Names,
        "Merges a branch; strategies are programs, and are not in the row.",
    ),
    row(
        "git cherry-pick",
        Writes,
        &["-n -x -m: --no-commit --mainline: --abort --continue --skip --quit --no-edit --ff \
        --allow-empty"],
        Names,
        "Applies commits.",
    ),
    row(
        "git revert",
        Writes,
        &["-n -m: --no-commit --mainline: --abort --continue --skip --quit --no-edit"],
        Names,
        "Takes commits back with a new one.",
    ),
    row(
        "git rebase",
        Writes,
        &["--abort --continue --skip --quit --onto: -q -v --quiet --verbose --stat --no-stat --autostash \
        --no-autostash --keep-base --no-fork-point"],
        Names,
        "Moves commits; `--exec` would run commands between them.",
    ),
    row(
        "git reset",
        Writes,
        &["-q --quiet --mixed --soft -N --refresh --no-refresh"],
        Paths,
        "Unstages files or moves the branch; `--hard` would lose changes.",
    ),
    row("git notes show", Reads, &["--ref:word"], Names, "Shows notes of a commit."),
    // git, talking to remotes.
    row(
        "git fetch",
        Network,
        &["-a -p -t -q -v -n --all --append --prune --tags --no-tags --quiet --verbose --depth: --deepen: \
        --unshallow --dry-run --progress --no-progress -j: --jobs: --shallow-since: --prune-tags --atomic -4 -6 \
        --no-recurse-submodules --set-upstream"],
        Remote,
        "Fetches from a remote that is set up.",
    ),
    row(
        "git pull",
        Network,
        &["-q -v -r --quiet --verbose --rebase --no-rebase --ff --ff-only --no-ff --no-edit --all --prune \
        -p --tags --no-tags --autostash --no-autostash --depth: --dry-run --progress --no-progress --stat --no-stat \
        --no-recurse-submodules"],
        Remote,
        "Fetches from a remote that is set up, and merges.",
    ),
    row(
        "git push",
        Network,
        &["-u --set-upstream -q --quiet -v --verbose -n --dry-run --porcelain --progress --no-progress \
        --tags --follow-tags --atomic --no-signed"],
        Remote,
        "Sends commits to a remote that is set up; whatever overwrites or deletes there is not in the row.",
    ),
    row(
        "git ls-remote",
        Network,
        &["-h -t -q --heads --branches --tags --refs --quiet --exit-code --symref --sort: --get-url"],
        Remote,
        "Lists what a remote has that is set up.",
    ),
    row("git remote show", Network, &["-n"], Remote, "Shows a remote that is set up."),
    // Rust. `rust-toolchain.toml` may name a directory of the project as the toolchain, which then is what runs, and
    // `.cargo/config.toml` may name wrappers of the compiler and other meanings of subcommands: nothing here only reads.
    row(
        "cargo build",
        Runs,
        &[CARGO, "--timings:: --build-plan"],
        Nothing,
        "Builds the project, with its build scripts.",
    ),
    row("cargo check", Runs, &[CARGO], Nothing, "Checks the project, with its build scripts."),
    row("cargo test", Runs, &[CARGO, "--no-run --no-fail-fast --doc", LIBTEST], Names, "Runs tests of the project."),
    row("cargo bench", Runs, &[CARGO, "--no-run --no-fail-fast", LIBTEST], Names, "Runs benchmarks of the project."),
    row("cargo clippy", Runs, &[CARGO, "--no-deps -- -D: -W: -A: -F:"], Nothing, "Lints the project; without `--fix`."),
    row(
        "cargo doc",
        Runs,
        &[CARGO, "--no-deps --document-private-items"],
        Nothing,
        "Builds the documentation; without `--open`.",
    ),
    row(
        "cargo fmt",
        Runs,
        &["--all --check -p: --package: -v -q --verbose --quiet -- --check -l -v -q"],
        Nothing,
        "Formats the project.",
    ),
    row(
        "cargo fmt --check",
        Runs,
        &["--all -p: --package: -v -q -- -l"],
        Nothing,
        "Says whether the project is formatted.",
    ),
    row(
        "cargo clean",
        Deletes,
        &["-p: --package: -r --release --profile:word --doc --dry-run -n -v -q"],
        Nothing,
        "Deletes what was built.",
    ),
    row(
        "cargo tree",
        Runs,
        &["-p: --package: -i: --invert: -d --duplicates -e: --edges: --depth: --prefix:word -f: --format: \
        --workspace --all-features --no-default-features -F: --features: --locked --offline --frozen --target:word --no-dedupe \
        --charset:word --prune: -q -v"],
        Nothing,
        "Shows dependencies.",
    ),
    row(
        "cargo metadata",
        Runs,
        &["--format-version: --no-deps --locked --offline --frozen --all-features \
        --no-default-features --features: -F: --filter-platform:word -q -v"],
        Nothing,
        "Shows the project as JSON.",
    ),
    row(
        "cargo update",
        Runs,
        &["-p: --package: -w --workspace --dry-run --recursive --precise: --offline --locked -q -v"],
        Names,
        "Updates the lock file.",
    ),
    row(
        "cargo fetch",
        Runs,
        &["--locked --offline --frozen --target:word -q -v"],
        Nothing,
        "Downloads what the lock file names.",
    ),
    row(
        "cargo nextest run",
        Runs,
        &[CARGO, "--no-capture --no-fail-fast -E: --run-ignored:word --test-threads: --no-run"],
        Names,
        "Runs tests of the project.",
    ),
    row("cargo pkgid", Runs, &["-p:"], Names, "Shows the id of a package."),
    row("cargo locate-project", Runs, &["--workspace --message-format:word"], Nothing, "Shows where the manifest is."),
    row("cargo verify-project", Runs, &["-q"], Nothing, "Checks the manifest."),
    row("cargo version", Runs, &["-v --verbose"], Nothing, "Shows the version."),
    row("cargo --version", Runs, &["-v --verbose"], Nothing, "Shows the version."),
    row("cargo -V", Runs, &["-v --verbose"], Nothing, "Shows the version."),
    row("cargo --list", Runs, &[], Nothing, "Lists subcommands."),
    row("rustc --version", Runs, &["-v --verbose"], Nothing, "Shows the version."),
    row("rustc -V", Runs, &["-v --verbose"], Nothing, "Shows the version."),
    row("rustc -vV", Runs, &[], Nothing, "Shows the version."),
    row("rustc --print sysroot", Runs, &[], Nothing, "Shows where the toolchain is; with a file it would compile."),
    row("rustc --print cfg", Runs, &[], Nothing, "Shows what code may ask about; with a file it would compile."),
    row("rustc --print target-list", Runs, &[], Nothing, "Lists targets; with a file it would compile."),
    row("rustfmt --check", Runs, &["--edition:word -v -q -l"], Paths, "Says whether files are formatted."),
    row("rustfmt", Runs, &["--check --edition:word -v -q -l"], Changed, "Formats files."),
    row("rustup show", Runs, &["-v --verbose"], Nothing, "Shows toolchains."),
    row("rustup toolchain list", Runs, &["-v --verbose -q"], Nothing, "Lists toolchains."),
    row("rustup target list", Runs, &["--installed --toolchain:word -q"], Nothing, "Lists targets."),
    row("rustup component list", Runs, &["--installed --toolchain:word -q"], Nothing, "Lists components."),
    row("rustup which", Runs, &["--toolchain:word"], Names, "Shows where a tool is."),
    row("rustup --version", Runs, &[], Nothing, "Shows the version."),
    // Go. Its options have one dash. `go.mod` may name the toolchain that is fetched and run, so only `gofmt` reads.
    row("go build", Runs, &[GO_BUILD], Paths, "Builds packages; without the options that name other programs."),
    row("go test", Runs, &[GO_BUILD, GO_TEST], Paths, "Runs tests; without `-exec` and `-toolexec`."),
    row("go vet", Runs, &[GO_BUILD, "-json"], Paths, "Checks packages; without `-vettool`."),
    row("go fmt", Writes, &["-n -x -mod:word"], Changed, "Formats packages."),
    row(
        "go list",
        Runs,
        &["-m -u -json -f: -deps -test -e -find -versions -tags: -mod:word"],
        Paths,
        "Lists packages.",
    ),
    row("go env", Runs, &["-json -changed"], Names, "Shows settings; `-w` would change them."),
    row("go version", Runs, &["-m -v -json"], Paths, "Shows the version."),
    row("go doc", Runs, &["-all -src -short -u -c -cmd"], Names, "Shows documentation."),
    row(
        "go mod tidy",
        Network,
        &["-v -e -x -diff -compat: -go:"],
        Nothing,
        "Brings the list of dependencies in order.",
    ),
    row("go mod download", Network, &["-x -json"], Nothing, "Downloads dependencies that are listed."),
    row("go mod verify", Runs, &["-json"], Nothing, "Checks dependencies."),
    row("go mod graph", Runs, &["-go: -x"], Nothing, "Shows dependencies."),
    row("go mod why", Runs, &["-m -vendor"], Names, "Says why something is a dependency."),
    row("gofmt", Reads, &["words -l -d -e -s"], Paths, "Shows what formatting would change; without `-w`."),
    row("gofmt -w", Writes, &["words -l -s"], Changed, "Formats files."),
    // JavaScript. A project may name the version of the runtime and of the package manager that runs. Words after the name of a script go to the script, of which nothing is known.
    row("npm test", Runs, &[NPM, "-w:name --workspace:name -ws --workspaces"], Nothing, "Runs the script for tests."),
    row("npm t", Runs, &[NPM], Nothing, "Runs the script for tests."),
    row("npm run", Runs, &["words --json"], Nothing, "Lists scripts."),
    row(
        "npm run *",
        Runs,
        &[NPM, "-w:name --workspace:name -ws --workspaces"],
        Nothing,
        "Runs the script that the rule names.",
    ),
    row("npm run-script *", Runs, &[NPM], Nothing, "Runs the script that the rule names."),
    row("npm ci", Runs, &[NPM], Nothing, "Installs what the lock file names, with its scripts."),
    row(
        "npm install",
        Runs,
        &[NPM, "--package-lock-only --dry-run"],
        Nothing,
        "Installs what the project names; with the name of a package it would add one.",
    ),
    row(
        "npm ls",
        Runs,
        &["words --all -a --depth: --json --long -l --parseable -p -g --global --omit:word"],
        Names,
        "Lists packages.",
    ),
    row(
        "npm outdated",
        Network,
        &["words --json --long -l --all -a"],
        Names,
        "Lists packages that are not the newest.",
    ),
    row(
        "npm audit",
        Network,
        &["words --json --omit:word --audit-level:word --production"],
        Nothing,
        "Lists known faults; without `fix`.",
    ),
    row("npm view", Network, &["words --json"], Packages, "Shows what the registry knows of a package."),
    row("npm --version", Runs, &[], Nothing, "Shows the version."),
    row("npm -v", Runs, &[], Nothing, "Shows the version."),
    row("pnpm test", Runs, &["words -s --silent -r --recursive --if-present"], Nothing, "Runs the script for tests."),
    row(
        "pnpm run *",
        Runs,
        &["words -s --silent -r --recursive --if-present"],
        Nothing,
        "Runs the script that the rule names.",
    ),
    row(
        "pnpm install",
        Runs,
        &["words --frozen-lockfile --no-frozen-lockfile --offline --prefer-offline --ignore-scripts --silent \
        --lockfile-only --prod -P -D"],
        Nothing,
        "Installs what the project names.",
    ),
    row(
        "pnpm list",
        Runs,
        &["words --depth: --json --long --parseable -r --recursive --prod -P --dev -D"],
        Names,
        "Lists packages.",
    ),
    row("pnpm ls", Runs, &["words --depth: --json --long -r --recursive"], Names, "Lists packages."),
    row("pnpm why", Runs, &["words --json -r --recursive"], Names, "Says why a package is there."),
    row("pnpm outdated", Network, &["words --json -r --recursive"], Names, "Lists packages that are not the newest."),
    row("pnpm --version", Runs, &[], Nothing, "Shows the version."),
    row("yarn test", Runs, &["words -s --silent"], Nothing, "Runs the script for tests."),
    row("yarn build", Runs, &["words -s --silent"], Nothing, "Runs the script that builds."),
    row("yarn lint", Runs, &["words -s --silent"], Nothing, "Runs the script that lints."),
    row("yarn run *", Runs, &["words -s --silent"], Nothing, "Runs the script that the rule names."),
    row(
        "yarn install",
        Runs,
        &["words --frozen-lockfile --immutable --offline --prefer-offline --ignore-scripts --silent"],
        Nothing,
        "Installs what the project names.",
    ),
    row("yarn list", Runs, &["words --depth: --json --pattern:"], Nothing, "Lists packages."),
    row("yarn why", Runs, &["words --json"], Names, "Says why a package is there."),
    row("yarn --version", Runs, &[], Nothing, "Shows the version."),
    row(
        "bun test",
        Runs,
        &["words -t: --test-name-pattern: --bail:: --timeout: --coverage --only --todo --rerun-each:"],
        Paths,
        "Runs tests of the project.",
    ),
    row("bun run *", Runs, &["words --silent --bun"], Nothing, "Runs the script that the rule names."),
    row(
        "bun install",
        Runs,
        &["words --frozen-lockfile --ignore-scripts --production --silent --dry-run"],
        Nothing,
        "Installs what the project names.",
    ),
    row("bun --version", Runs, &[], Nothing, "Shows the version."),
    row("node --version", Runs, &[], Nothing, "Shows the version."),
    row("node -v", Runs, &[], Nothing, "Shows the version."),
    row(
        "tsc",
        Runs,
        &["-noEmit --noEmit -p:path --project:path --pretty --watch -w -b --build --incremental --skipLibCheck \
        --strict --listFiles --showConfig --version -v --noErrorTruncation --extendedDiagnostics --diagnostics"],
        Paths,
        "Compiles as the project's settings say, to where they say.",
    ),
    row(
        "eslint",
        Runs,
        &[
            "words --ext: --quiet --max-warnings: --format:word -f:word --color --no-color --no-error-on-unmatched-pattern \
        --report-unused-disable-directives --no-inline-config --debug --version -v --pass-on-no-patterns",
        ],
        Paths,
        "Lints with the project's settings; without `--fix` and without other settings.",
    ),
    row(
        "eslint --fix",
        Writes,
        &["words --ext: --quiet --max-warnings: --format:word -f:word --color --no-color"],
        Changed,
        "Lints with the project's settings and mends files.",
    ),
    row(
        "prettier --check",
        Runs,
        &["words -u --ignore-unknown --log-level:word --no-color --no-error-on-unmatched-pattern"],
        Paths,
        "Says which files are not formatted.",
    ),
    row(
        "prettier -c",
        Runs,
        &["words -u --ignore-unknown --log-level:word --no-color"],
        Paths,
        "Says which files are not formatted.",
    ),
    row(
        "prettier --list-different",
        Runs,
        &["words -u --ignore-unknown --log-level:word"],
        Paths,
        "Lists files that are not formatted.",
    ),
    row(
        "prettier --write",
        Writes,
        &["words -u --ignore-unknown --log-level:word --no-color --list-different -l"],
        Changed,
        "Formats files.",
    ),
    row("jest", Runs, &[JEST], Paths, "Runs tests with the project's settings."),
    row(
        "vitest",
        Runs,
        &["words -t: --testNamePattern: --run --coverage --silent --bail: --no-color --passWithNoTests \
        --reporter:word --hideSkippedTests --testTimeout: --no-watch"],
        Paths,
        "Runs tests with the project's settings.",
    ),
    row(
        "vitest run",
        Runs,
        &["words -t: --testNamePattern: --coverage --silent --bail: --no-color --passWithNoTests --reporter:word \
        --hideSkippedTests --testTimeout:"],
        Paths,
        "Runs tests with the project's settings.",
    ),
    row(
        "mocha",
        Runs,
        &["words -g: --grep: -f: --fgrep: -b --bail -t: --timeout: -C --no-color --recursive --exit -i --invert"],
        Paths,
        "Runs tests with the project's settings.",
    ),
    row(
        "playwright test",
        Runs,
        &["words -g: --grep: --headed -j: --workers: --retries: --project:word -x --reporter:word --list"],
        Paths,
        "Runs tests with the project's settings.",
    ),
    // Python. A project may name the version and the environment that runs.
    row("pytest", Runs, &[PYTEST], Paths, "Runs tests; without plugins, settings and places that are named."),
    row("py.test", Runs, &[PYTEST], Paths, "Runs tests."),
    row("python -m pytest", Runs, &[PYTEST], Paths, "Runs tests."),
    row("uv run pytest", Runs, &[PYTEST], Paths, "Runs tests in the project's environment."),
    row("poetry run pytest", Runs, &[PYTEST], Paths, "Runs tests in the project's environment."),
    row(
        "python -m unittest",
        Runs,
        &["-v -q -f -b -k: --verbose --quiet --failfast --buffer --locals"],
        Names,
        "Runs tests.",
    ),
    row(
        "python -m unittest discover",
        Runs,
        &["-v -q -f -b -k: -s:path -t:path -p: --verbose"],
        Nothing,
        "Runs tests.",
    ),
    row("python --version", Runs, &[], Nothing, "Shows the version."),
    row("python -V", Runs, &[], Nothing, "Shows the version."),
    row(
        "python -m pip list",
        Runs,
        &["--outdated -o --format:word --not-required -l --local -v"],
        Nothing,
        "Lists packages.",
    ),
    row("python -m pip show", Runs, &["-f --files -v"], Names, "Shows a package."),
    row(
        "python -m mypy",
        Runs,
        &["--strict -p:name -m:name --ignore-missing-imports --show-error-codes --pretty --no-incremental \
        --no-color-output -v"],
        Paths,
        "Checks types with the project's settings.",
    ),
    row("python -m ruff check", Runs, &[RUFF], Paths, "Lints."),
    row(
        "python -m black --check",
        Runs,
        &["--diff -q -v --fast -l:number --color --no-color"],
        Paths,
        "Says what is not formatted.",
    ),
    row(
        "pip list",
        Runs,
        &["--outdated -o --format:word --not-required -l --local -v --user"],
        Nothing,
        "Lists packages.",
    ),
    row("pip show", Runs, &["-f --files -v"], Names, "Shows a package."),
    row("pip freeze", Runs, &["-l --local --all --user"], Nothing, "Lists packages."),
    row("pip check", Runs, &["-q -v"], Nothing, "Checks that packages fit."),
    row("pip --version", Runs, &[], Nothing, "Shows the version."),
    row(
        "uv sync",
        Runs,
        &["--frozen --locked --all-extras --all-groups --dev --no-dev -q -v --offline --extra:word --group:word"],
        Nothing,
        "Installs what the project names.",
    ),
    row(
        "uv lock",
        Network,
        &["--check --locked --dry-run -q -v --offline --upgrade -U"],
        Nothing,
        "Writes the lock file.",
    ),
    row(
        "uv tree",
        Runs,
        &["--depth: --frozen --locked --no-dev --invert -q -v --offline"],
        Nothing,
        "Shows dependencies.",
    ),
    row("uv pip list", Runs, &["--outdated --format:word -q"], Nothing, "Lists packages."),
    row("uv pip show", Runs, &["-q"], Names, "Shows a package."),
    row("uv pip freeze", Runs, &["-q"], Nothing, "Lists packages."),
    row("uv run ruff check", Runs, &[RUFF], Paths, "Lints in the project's environment."),
    row(
        "uv run mypy",
        Runs,
        &["--strict -p:name -m:name --ignore-missing-imports --show-error-codes --pretty"],
        Paths,
        "Checks types with the project's settings.",
    ),
    row("uv --version", Runs, &[], Nothing, "Shows the version."),
    row(
        "poetry install",
        Runs,
        &["--no-root --sync --with:word --without:word --only:word -q -v -n --no-interaction --dry-run"],
        Nothing,
        "Installs what the project names.",
    ),
    row(
        "poetry show",
        Runs,
        &["-t --tree -o --outdated -l --latest -a --all --no-ansi -T --top-level"],
        Names,
        "Shows packages.",
    ),
    row("poetry check", Runs, &["--lock --strict"], Nothing, "Checks the project's file."),
    row("poetry lock", Network, &["--no-update --regenerate -q -n"], Nothing, "Writes the lock file."),
    row("poetry --version", Runs, &[], Nothing, "Shows the version."),
    row(
        "ruff check",
        Writes,
        &[RUFF, "-w --watch"],
        Paths,
        "Lints; the project's settings may say that it mends files.",
    ),
    row("ruff check --no-fix", Reads, &[RUFF], Paths, "Lints."),
    row("ruff check --fix", Writes, &[RUFF, "--unsafe-fixes"], Changed, "Lints and mends files."),
    row(
        "ruff format",
        Writes,
        &["--check --diff -q -v --no-cache -n --preview --line-length:number"],
        Changed,
        "Formats files.",
    ),
    row("ruff format --check", Reads, &["--diff -q -v --no-cache -n --preview"], Paths, "Says what is not formatted."),
    row("ruff --version", Reads, &[], Nothing, "Shows the version."),
    row(
        "mypy",
        Runs,
        &["--strict -p:name -m:name --ignore-missing-imports --show-error-codes --show-column-numbers --pretty \
        --no-incremental --no-color-output --follow-imports:word --no-error-summary -v --warn-unused-ignores --version \
        --disallow-untyped-defs --check-untyped-defs --explicit-package-bases --namespace-packages"],
        Paths,
        "Checks types with the project's settings.",
    ),
    row("pyright", Runs, &["--stats --verbose --warnings --outputjson --version"], Paths, "Checks types."),
    row(
        "black",
        Writes,
        &["--check --diff -q -v --quiet --verbose --fast --safe -l:number --line-length:number --color --no-color \
        -S -C --preview --version"],
        Changed,
        "Formats files.",
    ),
    row(
        "black --check",
        Reads,
        &["--diff -q -v --quiet --fast -l:number --line-length:number --color --no-color"],
        Paths,
        "Says what is not formatted.",
    ),
    row("isort --check-only", Reads, &["--diff -q -v --profile:word"], Paths, "Says which imports are not sorted."),
    row(
        "flake8",
        Runs,
        &["-v -q --count --statistics --max-line-length:number --select: --ignore: --extend-ignore: --show-source"],
        Paths,
        "Lints.",
    ),
    // Building with other tools. A target is a part of the rule.
    row(
        "make",
        Runs,
        &["-j:number --jobs=number -k -s -n -B -w --keep-going --silent --quiet --dry-run --just-print \
        --always-make --no-print-directory --output-sync::word -O"],
        Nothing,
        "Makes the first target.",
    ),
    row(
        "make *",
        Runs,
        &["-j:number --jobs=number -k -s -n -B -w --keep-going --silent --quiet --dry-run --just-print \
        --always-make --no-print-directory --output-sync::word -O"],
        Nothing,
        "Makes the target that the rule names, and no other; variables could be programs.",
    ),
    row("make --version", Reads, &[], Nothing, "Shows the version."),
    row(
        "cmake --build",
        Runs,
        &["-j:number --parallel:number --config:word -v --verbose --clean-first --"],
        Paths,
        "Builds what was set up; without other targets.",
    ),
    row(
        "cmake",
        Runs,
        &["-S:path -B:out -G: -DCMAKE_BUILD_TYPE=word -DCMAKE_EXPORT_COMPILE_COMMANDS=word -DBUILD_TESTING=word \
        -DBUILD_SHARED_LIBS=word --fresh -Wno-dev"],
        Paths,
        "Sets up a build; other variables could be programs.",
    ),
    row("cmake --version", Reads, &[], Nothing, "Shows the version."),
    row(
        "ctest",
        Runs,
        &["--test-dir:path -j:number --parallel:number -R: -E: -L: -V --verbose --output-on-failure \
        --rerun-failed --timeout: -N --show-only --stop-on-failure -Q --quiet -C:word --progress"],
        Nothing,
        "Runs tests of the build.",
    ),
    row(
        "ninja",
        Runs,
        &["-C:path -j:number -k:number -l:number -v -n --verbose --quiet --version"],
        Nothing,
        "Builds all.",
    ),
    row("meson compile", Runs, &["-C:path -j:number -v"], Nothing, "Builds all."),
    row(
        "meson test",
        Runs,
        &["-C:path -v --verbose --no-rebuild --print-errorlogs --list"],
        Names,
        "Runs tests of the build.",
    ),
    row("dotnet build", Runs, &[DOTNET, "--"], Paths, "Builds the project."),
    row("dotnet test", Runs, &[DOTNET, "--filter: -t --list-tests --"], Paths, "Runs tests of the project."),
    row(
        "dotnet restore",
        Runs,
        &["words -v:word --verbosity:word --nologo --locked-mode"],
        Paths,
        "Installs what the project names.",
    ),
    row(
        "dotnet format --verify-no-changes",
        Runs,
        &["words --no-restore -v:word"],
        Paths,
        "Says what is not formatted.",
    ),
    row("dotnet --version", Runs, &[], Nothing, "Shows the version."),
    row("dotnet --info", Runs, &[], Nothing, "Shows what is installed."),
    row("mvn test", Runs, &[MVN], Nothing, "Runs tests of the project."),
    row("mvn compile", Runs, &[MVN], Nothing, "Builds the project."),
    row("mvn verify", Runs, &[MVN], Nothing, "Builds and tests the project."),
    row("mvn package", Runs, &[MVN], Nothing, "Builds and packs the project."),
    row("mvn validate", Runs, &[MVN], Nothing, "Checks the project."),
    row("mvn dependency:tree", Runs, &[MVN], Nothing, "Shows dependencies."),
    row("mvn --version", Runs, &[], Nothing, "Shows the version."),
    row("mvn -v", Runs, &[], Nothing, "Shows the version."),
    row("gradle test", Runs, &[GRADLE], Nothing, "Runs tests of the project."),
    row("gradle build", Runs, &[GRADLE], Nothing, "Builds the project."),
    row("gradle check", Runs, &[GRADLE], Nothing, "Checks the project."),
    row("gradle assemble", Runs, &[GRADLE], Nothing, "Builds the project."),
    row("gradle tasks", Runs, &[GRADLE, "--all"], Nothing, "Lists tasks."),
    row("gradle dependencies", Runs, &[GRADLE, "--configuration:word"], Nothing, "Shows dependencies."),
    row("gradle --version", Runs, &[], Nothing, "Shows the version."),
    row("bundle check", Runs, &["--dry-run"], Nothing, "Says whether all is installed."),
    row("bundle list", Runs, &["--name-only --paths"], Nothing, "Lists packages."),
    row(
        "bundle install",
        Runs,
        &["--local --quiet -j:number --jobs:number"],
        Nothing,
        "Installs what the project names.",
    ),
    row(
        "bundle exec rspec",
        Runs,
        &["-fd -fp --format:word -e: --example: --fail-fast -b --backtrace --no-color --color \
        --only-failures --seed:number"],
        Paths,
        "Runs tests of the project.",
    ),
    row(
        "bundle exec rubocop",
        Runs,
        &["-D -P --parallel --only: --format:word"],
        Paths,
        "Lints with the project's settings.",
    ),
    row(
        "rspec",
        Runs,
        &["-fd -fp --format:word -e: --example: --fail-fast -b --backtrace --no-color --color --only-failures \
        --seed:number"],
        Paths,
        "Runs tests of the project.",
    ),
    row("rake", Runs, &["-q -s -v -m --quiet --silent --trace"], Nothing, "Runs the first task."),
    row(
        "rake *",
        Runs,
        &["-q -s -v -m --quiet --silent --trace"],
        Nothing,
        "Runs the task that the rule names, and no other.",
    ),
    row("rake -T", Runs, &["-A"], Nothing, "Lists tasks."),
    row(
        "composer install",
        Runs,
        &["--no-dev --no-interaction -n --no-scripts --no-progress -q -v --dry-run --prefer-dist"],
        Nothing,
        "Installs what the project names.",
    ),
    row(
        "composer validate",
        Runs,
        &["--strict --no-check-all --no-check-publish -q -n"],
        Nothing,
        "Checks the project's file.",
    ),
    row(
        "composer show",
        Runs,
        &["-t --tree -D --direct -l --latest -o --outdated -i --installed -n"],
        Names,
        "Shows packages.",
    ),
    row(
        "phpunit",
        Runs,
        &["--filter: --testdox --stop-on-failure --no-coverage --testsuite:word --colors::word"],
        Paths,
        "Runs tests with the project's settings.",
    ),
    row(
        "swift build",
        Runs,
        &["-c:word --configuration:word -v --verbose -j:number --target:word --product:word"],
        Nothing,
        "Builds the project.",
    ),
    row(
        "swift test",
        Runs,
        &["-c:word --filter: --parallel -v --verbose -l --list-tests"],
        Nothing,
        "Runs tests of the project.",
    ),
    row(
        "mix test",
        Runs,
        &["--trace --failed --stale --seed:number --max-failures:number --only: --exclude: --include:"],
        Paths,
        "Runs tests of the project.",
    ),
    row("mix format --check-formatted", Runs, &[], Paths, "Says what is not formatted."),
    row("zig build", Runs, &["--summary:word"], Nothing, "Builds the project."),
    row("just --list", Runs, &["-u --unsorted"], Nothing, "Lists recipes."),
    row("just *", Runs, &["-n --dry-run -q --quiet -v --verbose"], Nothing, "Runs the recipe that the rule names."),
    // Looking at other systems. What prints secrets or opens a way in is not here.
    row(
        "docker ps",
        Reads,
        &["-a -q -l -n: -s --all --quiet --latest --no-trunc --filter: -f: --format: --size"],
        Nothing,
        "Lists containers.",
    ),
    row(
        "docker images",
        Reads,
        &["-a -q --all --quiet --no-trunc --digests --filter: -f: --format:"],
        Names,
        "Lists images.",
    ),
    row(
        "docker logs",
        Reads,
        &["-t -n: --tail: --since: --until: --timestamps --details"],
        Names,
        "Shows output of a container.",
    ),
    row("docker version", Reads, &["-f: --format:"], Nothing, "Shows the version."),
    row("docker info", Reads, &["-f: --format:"], Nothing, "Shows what it runs on."),
    row("docker volume ls", Reads, &["-q --filter: -f: --format:"], Nothing, "Lists volumes."),
    row("docker network ls", Reads, &["-q --no-trunc --filter: -f: --format:"], Nothing, "Lists networks."),
    row("docker compose ps", Runs, &["-a -q --all --services --format:word"], Names, "Lists services."),
    row(
        "docker compose logs",
        Runs,
        &["-t -n: --tail: --since: --until: --no-color --timestamps --no-log-prefix"],
        Names,
        "Shows output of services.",
    ),
    row(
        "kubectl get pods",
        Network,
        &["-n:word --namespace:word -A --all-namespaces -l: --selector: --show-labels --no-headers"],
        Names,
        "Lists pods.",
    ),
    row(
        "kubectl get deployments",
        Network,
        &["-n:word --namespace:word -A --all-namespaces -l: --show-labels"],
        Names,
        "Lists deployments.",
    ),
    row(
        "kubectl get services",
        Network,
        &["-n:word --namespace:word -A --all-namespaces -l: --show-labels"],
        Names,
        "Lists services.",
    ),
    row("kubectl get nodes", Network, &["-l: --show-labels --no-headers"], Names, "Lists nodes."),
    row("kubectl get namespaces", Network, &["-l: --show-labels --no-headers"], Names, "Lists namespaces."),
    row(
        "kubectl get events",
        Network,
        &["-n:word --namespace:word -A --all-namespaces --sort-by:"],
        Nothing,
        "Lists events.",
    ),
    row(
        "kubectl logs",
        Network,
        &["-n:word --namespace:word -c:word --container:word --tail: --since: -p --previous --timestamps"],
        Names,
        "Shows output of a pod.",
    ),
    row("kubectl version", Network, &["--client"], Nothing, "Shows the version."),
    row("kubectl config current-context", Reads, &[], Nothing, "Shows which cluster is meant."),
    row("gh pr view", Network, &["--comments -c --json:"], Names, "Shows a pull request of this repository."),
    row(
        "gh pr list",
        Network,
        &["-s:word --state:word -L: --limit: -A: --author: -l: --label: -B: --base: -S: --search: --json: -d --draft"],
        Nothing,
        "Lists pull requests of this repository.",
    ),
    row("gh pr status", Network, &["--json:"], Nothing, "Shows pull requests of this branch."),
    row("gh pr diff", Network, &["--name-only --patch --color:word"], Names, "Shows the changes of a pull request."),
    row("gh pr checks", Network, &["--required --json: --watch"], Names, "Shows checks of a pull request."),
    row("gh issue view", Network, &["--comments -c --json:"], Names, "Shows an issue of this repository."),
    row(
        "gh issue list",
        Network,
        &["-s:word --state:word -L: --limit: -A: --author: -l: --label: -S: --search: --json:"],
        Nothing,
        "Lists issues of this repository.",
    ),
    row("gh run list", Network, &["-L: --limit: -b: --branch: -w: --workflow: --json:"], Nothing, "Lists runs."),
    row("gh run view", Network, &["--log --log-failed -v --verbose --json: --exit-status"], Names, "Shows a run."),
    row(
        "gh auth status",
        Network,
        &["-h:name --hostname:name -a --active"],
        Nothing,
        "Says who is logged in; without the token.",
    ),
    row("gh --version", Reads, &[], Nothing, "Shows the version."),
    row("terraform fmt -check", Reads, &["-diff -recursive -list=word"], Paths, "Says what is not formatted."),
    row(
        "terraform validate",
        Runs,
        &["-json -no-color"],
        Nothing,
        "Checks the configuration; `plan` would use credentials.",
    ),
    row("terraform version", Reads, &["-json"], Nothing, "Shows the version."),
    // Looking at files.
    row(
        "ls",
        Reads,
        &["-l -a -A -1 -h -t -r -R -S -d -F -i -s -n -g -o -p -Q -X -U -k -c -u -G -x -m -C --all --almost-all \
        --color:: --sort: --time: --human-readable --reverse --recursive --directory --full-time --group-directories-first \
        --inode --size --classify:: --time-style: --ignore: -I: --no-group --si"],
        Paths,
        "Lists files.",
    ),
    row(
        "cat",
        Reads,
        &["-n -b -A -e -E -s -t -T -v -u --number --number-nonblank --show-all --show-ends --show-tabs \
        --squeeze-blank --show-nonprinting"],
        Paths,
        "Shows files.",
    ),
    row(
        "head",
        Reads,
        &["-n: -c: -q -v -# --lines: --bytes: --quiet --verbose"],
        Paths,
        "Shows the beginning of files.",
    ),
    row(
        "tail",
        Reads,
        &["-n: -c: -q -v -f -F -s: -# --lines: --bytes: --follow:: --quiet --verbose --retry"],
        Paths,
        "Shows the end of files.",
    ),
    row(
        "wc",
        Reads,
        &["-l -w -c -m -L --lines --words --bytes --chars --max-line-length"],
        Paths,
        "Counts lines and words.",
    ),
    row(
        "grep",
        Reads,
        &[
            GREP_LINES,
            "-r -I -G -b -z -T -y -# --include: --exclude: --exclude-dir: --color:: --colour:: --line-number \
        --ignore-case --invert-match --word-regexp --line-regexp --count --files-with-matches --files-without-match --only-matching \
        --quiet --silent --no-messages --no-filename --with-filename --recursive --extended-regexp --fixed-strings --perl-regexp \
        --basic-regexp --text --after-context: --before-context: --context: --max-count: --regexp: --binary-files:word \
        --line-buffered --byte-offset -f:path --file:path",
        ],
        PatternThenPaths,
        "Searches files; without following links, as `-R` does.",
    ),
    row(
        "rg",
        Reads,
        &[
            "-n -N -i -s -S -w -x -v -c -l -o -q -U -F -P -a -p -H -I -0 -e: -g: -t: -T: -A: -B: -C: -m: -M: -d: -j: -r: \
        --regexp: --glob: --iglob: --type: --type-not: --after-context: --before-context: --context: --max-count: \
        --max-columns: --max-depth: --max-filesize: --threads: --replace: --files --files-with-matches --files-without-match \
        --count --count-matches --json --stats --sort: --sortr: --heading --no-heading --column --line-number --no-line-number \
        --color: --no-ignore --no-ignore-vcs --ignore-case --smart-case --case-sensitive --word-regexp --line-regexp \
        --invert-match --only-matching --multiline --multiline-dotall --fixed-strings --pcre2 --pretty --quiet --trim \
        --vimgrep --type-list --with-filename --no-filename --no-messages --text --passthru --null --debug --version \
        --no-config --crlf --glob-case-insensitive",
        ],
        PatternThenPaths,
        "Searches files; without hidden ones, links and programs that prepare them.",
    ),
    row(
        "fd",
        Reads,
        &["-e: -t: -g -i -s -a -p -F -d: -E: -H -I -u -0 -1 -c: --extension: --type: --glob --ignore-case \
        --case-sensitive --absolute-path --full-path --fixed-strings --max-depth: --min-depth: --exclude: --hidden --no-ignore \
        --print0 --max-results: --color: --changed-within: --changed-before: --size: -S:"],
        PatternThenPaths,
        "Finds files by name; without programs that it runs for each.",
    ),
    row(
        "find",
        Reads,
        &["-name: -iname: -path: -ipath: -wholename: -type: -maxdepth: -mindepth: -size: -mtime: -mmin: -atime: \
        -ctime: -cmin: -amin: -newer:path -empty -not -o -a -or -and -print -print0 -prune -regex: -iregex: -regextype: -perm: \
        -user: -group: -ls -xdev -mount -depth -executable -readable -writable -links: -printf: -quit -true -false -P \
        -daystart -nouser -nogroup -inum: -used: -lname: -newermt:"],
        Paths,
        "Finds files; without following links, deleting, writing and running.",
    ),
    row(
        "sort",
        Reads,
        &["-u -r -n -h -V -g -M -R -b -d -f -i -c -C -m -s -z -t: -k: --unique --reverse --numeric-sort \
        --human-numeric-sort --version-sort --general-numeric-sort --ignore-case --ignore-leading-blanks --check:: --stable \
        --key: --field-separator: --zero-terminated --merge"],
        Paths,
        "Sorts lines; without `-o` and other programs.",
    ),
    row(
        "uniq",
        Reads,
        &["-c -d -D -u -i -z -f: -s: -w: --count --repeated --unique --ignore-case --skip-fields: --skip-chars:"],
        OnePath,
        "Takes out lines that are the same; a second name would be written.",
    ),
    row(
        "cut",
        Reads,
        &["-d: -f: -c: -b: -s -z -n --delimiter: --fields: --characters: --bytes: --only-delimited --complement \
        --output-delimiter:"],
        Paths,
        "Shows parts of lines.",
    ),
    row(
        "tr",
        Reads,
        &["-d -s -c -C -t --delete --squeeze-repeats --complement --truncate-set1"],
        Text,
        "Replaces characters of its input.",
    ),
    row("paste", Reads, &["-d: -s -z --delimiters: --serial"], Paths, "Puts lines side by side."),
    row("join", Reads, &["-1: -2: -t: -a: -v: -o: -i -j: -e: --header"], Paths, "Joins lines of files."),
    row("comm", Reads, &["-1 -2 -3 -i --total --check-order --nocheck-order"], Paths, "Compares sorted files."),
    row(
        "diff",
        Reads,
        &["-u -U: -c -C: -q -N -w -b -B -i -y -a -s -d -W: -# --unified:: --brief --new-file --color:: \
        --side-by-side --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --text --width: \
        --suppress-common-lines --report-identical-files --minimal --strip-trailing-cr --label: -L: -p --no-dereference"],
        Files,
        "Compares files; in directories it would follow links.",
    ),
    row("cmp", Reads, &["-s -l -b -n: -i: --silent --quiet --verbose"], Paths, "Compares files."),
    row(
        "stat",
        Reads,
        &["-c: -f -t -L --format: --printf: --terse --file-system --dereference -x"],
        Paths,
        "Shows what is known of files.",
    ),
    row(
        "file",
        Reads,
        &["-b -i -I -h -L -k -0 --brief --mime --mime-type --mime-encoding --no-dereference"],
        Paths,
        "Says what files are; without other tables and decompressing.",
    ),
    row(
        "du",
        Reads,
        &["-s -h -a -c -k -m -b -x -d: -t: -0 --max-depth: --summarize --human-readable --all --total \
        --apparent-size --bytes --exclude: --si --time"],
        Paths,
        "Counts sizes of files.",
    ),
    row(
        "df",
        Reads,
        &["-h -T -i -k -m -a -l -P -H -t: -x: --human-readable --print-type --inodes --total --output:: --local"],
        Paths,
        "Shows free space.",
    ),
    row(
        "tree",
        Reads,
        &[
            "-L: -a -d -f -i -s -h -p -u -g -D -F -r -t -C -n -v -x -J -N -q -I: -P: --dirsfirst --gitignore --noreport \
        --du --prune --si --filelimit: --charset:word",
        ],
        Paths,
        "Shows directories; without `-o` and links.",
    ),
    row("nl", Reads, &["-b: -n: -w: -s: -v: -i:"], Paths, "Numbers lines."),
    row("tac", Reads, &["-s: -b -r"], Paths, "Shows files backwards."),
    row("rev", Reads, &[], Paths, "Turns lines round."),
    row("fold", Reads, &["-w: -s -b"], Paths, "Breaks lines."),
    row("expand", Reads, &["-t: -i"], Paths, "Replaces tabs."),
    row("column", Reads, &["-t -s: -o: -c: -x -e"], Paths, "Makes columns."),
    row("strings", Reads, &["-n: -a -t: -e: -#"], Paths, "Shows texts in files."),
    row("od", Reads, &["-c -x -b -d -o -v -A: -t: -N: -j: -w::"], Paths, "Shows bytes."),
    row("hexdump", Reads, &["-C -v -c -b -d -x -o -n: -s:"], Paths, "Shows bytes."),
    row(
        "xxd",
        Reads,
        &["-ps -p -l: -s: -c: -g: -u -b -i -e -a -plain"],
        OnePath,
        "Shows bytes; a second name would be written, and `-r` too.",
    ),
    row("sha256sum", Reads, &["-b -t -z --tag --binary --text"], Paths, "Shows digests."),
    row("sha1sum", Reads, &["-b -t -z --tag"], Paths, "Shows digests."),
    row("sha512sum", Reads, &["-b -t -z --tag"], Paths, "Shows digests."),
    row("md5sum", Reads, &["-b -t -z --tag"], Paths, "Shows digests."),
    row("shasum", Reads, &["-a: -b -t --algorithm:"], Paths, "Shows digests."),
    row("cksum", Reads, &[], Paths, "Shows digests."),
    row(
        "base64",
        Reads,
        &["-d -D -i -w: --decode --wrap: --ignore-garbage"],
        OnePath,
        "Shows a file in letters, or back.",
    ),
    row(
        "sed",
        Reads,
        &[
            "-n -E -r -s -u -z -l:number --quiet --silent --regexp-extended --separate --null-data --posix -e:sed --expression:sed",
        ],
        Sed,
        "Prints, deletes and replaces lines of its output; without `-i`, and without commands that write or run.",
    ),
    row(
        "awk",
        Reads,
        &["-F: -v:"],
        Awk,
        "Prints parts of lines; programs with `>`, `|`, `system` and the like are not in the row.",
    ),
    row(
        "jq",
        Reads,
        &[
            "-r -c -n -s -e -S -M -C -a -j --raw-output --compact-output --null-input --slurp --exit-status --sort-keys \
        --monochrome-output --color-output --ascii-output --join-output --raw-input -R --tab --indent: --seq --stream",
        ],
        Jq,
        "Shows parts of JSON; without modules and other files.",
    ),
    row("zcat", Reads, &[], Paths, "Shows compressed files; `-f` would show others too, by names that are not given."),
    row(
        "tar -tf",
        Reads,
        &["-v -z -j -J"],
        Archive,
        "Lists an archive. Unpacking could write hooks of git, and is not in a row.",
    ),
    row("tar -tvf", Reads, &["-z -j -J"], Archive, "Lists an archive."),
    row("tar -tzf", Reads, &["-v"], Archive, "Lists an archive."),
    row("tar -tzvf", Reads, &[], Archive, "Lists an archive."),
    row("tar tf", Reads, &["-v -z -j -J"], Archive, "Lists an archive."),
    row("tar tvf", Reads, &["-z -j -J"], Archive, "Lists an archive."),
    row("tar tzf", Reads, &["-v"], Archive, "Lists an archive."),
    row("unzip -l", Reads, &["-v -q"], Paths, "Lists an archive."),
    row("unzip -t", Reads, &["-q"], Paths, "Tests an archive."),
    row("zipinfo", Reads, &["-1 -s -m -l -h -t"], Paths, "Lists an archive."),
    row("basename", Reads, &["-a -s: -z --multiple --suffix:"], Text, "Shows the last part of a path."),
    row("dirname", Reads, &["-z"], Text, "Shows a path without its last part."),
    row(
        "realpath",
        Reads,
        &["-e -m -s -q -z --relative-to:path --relative-base:path"],
        Paths,
        "Shows where a path leads.",
    ),
    row("readlink", Reads, &["-f -e -m -n -q -z"], Paths, "Shows where a link leads."),
    row("test -f", Reads, &[], OnePath, "Says whether a file is there."),
    row("test -d", Reads, &[], OnePath, "Says whether a directory is there."),
    row("test -e", Reads, &[], OnePath, "Says whether a path is there."),
    row("test -s", Reads, &[], OnePath, "Says whether a file is not empty."),
    row("test -r", Reads, &[], OnePath, "Says whether a file can be read."),
    row("test -w", Reads, &[], OnePath, "Says whether a file can be written."),
    row("test -x", Reads, &[], OnePath, "Says whether a file can be executed."),
    row("test -L", Reads, &[], OnePath, "Says whether a path is a link."),
    // Looking at the machine, and saying something.
    row("pwd", Reads, &["-P -L"], Nothing, "Shows the directory."),
    row("echo", Reads, &[], Anything, "Prints its words."),
    row(
        "printf",
        Reads,
        &[],
        Printf,
        "Prints its words; `-v` and `%n` would set a variable of the shell, and some shells calculate what is no number.",
    ),
    row("true", Reads, &[], Anything, "Does nothing."),
    row("false", Reads, &[], Anything, "Does nothing."),
    row(":", Reads, &[], Anything, "Does nothing."),
    row("seq", Reads, &["-s: -w -f: --separator: --equal-width"], Names, "Counts."),
    row("sleep", Reads, &[], Names, "Waits."),
    row(
        "date",
        Reads,
        &["-u -R -I:: -d: --utc --date: --rfc-3339:word --rfc-email --iso-8601::word -r:path"],
        Format,
        "Shows the time; other words would set it.",
    ),
    row("cal", Reads, &["-3 -y -m -1"], Names, "Shows a calendar."),
    row("which", Reads, &["-a -s"], Names, "Shows where a program is."),
    row("type", Reads, &["-a -t -p -P"], Names, "Says what a name stands for."),
    row("command -v", Reads, &[], Names, "Says what a name stands for."),
    row("whoami", Reads, &[], Nothing, "Shows the user."),
    row("id", Reads, &["-u -g -G -n -r -z --user --group --groups --name"], Names, "Shows the user."),
    row("groups", Reads, &[], Names, "Shows groups of the user."),
    row("uname", Reads, &["-a -r -s -m -n -p -o -v -i --all --kernel-release --machine"], Nothing, "Shows the system."),
    row("hostname", Reads, &["-f -s -i -I -d"], Nothing, "Shows the name of the machine; with a word it would set it."),
    row("arch", Reads, &[], Nothing, "Shows the processor."),
    row("nproc", Reads, &["--all --ignore:number"], Nothing, "Counts processors."),
    row("uptime", Reads, &["-p -s"], Nothing, "Shows how long the machine runs."),
    row("free", Reads, &["-h -m -g -k -b -t -w"], Nothing, "Shows memory."),
    row(
        "ps",
        Reads,
        &["-e -f -A -l -p:number"],
        Nothing,
        "Lists processes; the forms that show their variables are not in the row.",
    ),
    row("ps aux", Reads, &[], Nothing, "Lists processes."),
    row("pgrep", Reads, &["-l -a -f -c -n -x"], Names, "Finds processes."),
    row("lscpu", Reads, &["-e -p -J"], Nothing, "Shows the processor."),
    row("tty", Reads, &["-s"], Nothing, "Shows the terminal."),
    // Changing files.
    row("mkdir", Writes, &["-p -v --parents --verbose"], Changed, "Makes directories."),
    row("touch", Writes, &["-c -a -m --no-create"], Changed, "Makes empty files, or changes their times."),
    row(
        "cp",
        Writes,
        &["-p -v -n -f -i -u -P --verbose --no-clobber --force --interactive --update --preserve::word \
        --no-dereference"],
        Changed,
        "Copies files; with `-r` nobody could tell what all is overwritten.",
    ),
    row(
        "mv",
        Writes,
        &["-v -n -f -i -u --verbose --no-clobber --force --interactive --update -T --no-target-directory"],
        Changed,
        "Moves files.",
    ),
    row(
        "ln",
        Writes,
        &["-s -f -n -v --symbolic --force --no-dereference --verbose -r --relative"],
        Changed,
        "Makes links to paths of the session.",
    ),
    row("tee", Writes, &["-a --append"], Changed, "Writes its input to files."),
    row("chmod", Writes, &["-v -c -f --verbose --changes"], Mode, "Changes modes of files."),
    row("truncate", Deletes, &["-s: -c --size: --no-create"], Changed, "Cuts files off."),
    row("rm", Deletes, &["-f -v -i -I -d --force --verbose --dir"], Changed, "Deletes files; `-r` is asked about."),
    row(
        "rmdir",
        Deletes,
        &["-p -v --parents --verbose --ignore-fail-on-non-empty"],
        Changed,
        "Deletes empty directories.",
    ),
    row(
        "gzip",
        Writes,
        &["-k -v -l -t -c -f -# --keep --verbose --list --test --stdout --best --fast"],
        Changed,
        "Compresses files; decompressing makes files of other names.",
    ),
    row(
        "zip",
        Writes,
        &["-q -v -j -# -y -u"],
        Changed,
        "Packs files; `-r` would follow links, and the options that test an archive run a program.",
    ),
];

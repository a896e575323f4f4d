# Installs the command `attache` on Windows: downloads the archive, compares its SHA-256 with the list of the release, and puts the
# program into a directory of the user who runs this. It asks for no rights that you do not have.
#
#     irm @REPOSITORY@/releases/latest/download/install.ps1 | iex
#     .\install.ps1 [-Version VERSION] [-To DIR] [-From URL|DIR]

param(
    [string]$Version = '@VERSION@',
    [string]$To,
    [string]$From
)

# All of it is in a function, so that a script which arrives in part does nothing.
function Install-Attache {
    param([string]$Version, [string]$To, [string]$From)

    Set-StrictMode -Version 3
    $ErrorActionPreference = 'Stop'
    # Drawing its progress takes Windows PowerShell longer than the download.
    $ProgressPreference = 'SilentlyContinue'
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

    $repository = '@REPOSITORY@'
    $Version = $Version -replace '^v', ''
    if ($Version -notmatch '^[0-9][0-9A-Za-z.+-]*$') {
        throw "invalid version ``$Version``; name one with -Version"
    }
    if (-not $From) {
        if ($repository -notmatch '^https://') {
            throw 'this copy of the script does not know where releases are; name the place with -From'
        }
        $From = "$repository/releases/download/v$Version"
    }
    if (-not $To) {
        $To = Join-Path $env:LOCALAPPDATA 'Programs\attache'
    }
    # On ARM, Windows 11 translates programs for x64. A 32-bit shell names the real processor in the second variable.
    $processors = @($env:PROCESSOR_ARCHITECTURE, $env:PROCESSOR_ARCHITEW6432)
    if (-not ($processors -contains 'AMD64' -or $processors -contains 'ARM64')) {
        throw "there is no program for Windows on $env:PROCESSOR_ARCHITECTURE; build it from its source: $repository"
    }

    $archive = "attache-$Version-x86_64-pc-windows-gnu.zip"
    $scratch = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
    $null = New-Item -ItemType Directory -Path $scratch
    try {
        Write-Host "Downloading $archive"
        foreach ($name in 'SHA256SUMS', $archive) {
            $file = Join-Path $scratch $name
            if ($From -match '^https?://') {
                Invoke-WebRequest -UseBasicParsing -Uri "$($From.TrimEnd('/'))/$name" -OutFile $file
            } else {
                Copy-Item -LiteralPath (Join-Path $From $name) -Destination $file
            }
        }
        $expected = Get-Content -LiteralPath (Join-Path $scratch 'SHA256SUMS') |
            ForEach-Object { , ($_ -split '\s+', 2) } |
            Where-Object { $_.Count -eq 2 -and $_[1] -eq $archive } |
            ForEach-Object { $_[0] } |
            Select-Object -First 1
        if ($expected -notmatch '^[0-9a-f]{64}$') {
            throw "SHA256SUMS does not list $archive"
        }
        $found = (Get-FileHash -Algorithm SHA256 -LiteralPath (Join-Path $scratch $archive)).Hash
        if ($found -ne $expected) {
            throw "wrong checksum of ${archive}: expected $expected, found $found; nothing was installed"
        }
        Expand-Archive -LiteralPath (Join-Path $scratch $archive) -DestinationPath $scratch
        $program = Join-Path $scratch "attache-x86_64-pc-windows-gnu\attache.exe"
        $said = & $program --version
        if ($LASTEXITCODE -ne 0) {
            throw 'the program does not run on this machine; nothing was installed'
        }
        $null = New-Item -ItemType Directory -Force -Path $To
        $installed = Join-Path $To 'attache.exe'
        # A program that is running can be renamed, but not replaced.
        if (Test-Path -LiteralPath $installed) {
            $old = "$installed.old"
            Remove-Item -LiteralPath $old -Force -ErrorAction SilentlyContinue
            Move-Item -LiteralPath $installed -Destination $old -Force
        }
        Move-Item -LiteralPath $program -Destination $installed
        Remove-Item -LiteralPath "$installed.old" -Force -ErrorAction SilentlyContinue
        Write-Host "Installed $said in $To"
        if (($env:Path -split ';') -notcontains $To) {
            Write-Host "hint: $To is not in Path"
        }
    } finally {
        Remove-Item -LiteralPath $scratch -Recurse -Force -ErrorAction SilentlyContinue
    }
}

Install-Attache -Version $Version -To $To -From $From

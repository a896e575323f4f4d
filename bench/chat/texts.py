"""Texts that agents send: harmless words, and two hundred that try to reach the terminal."""

# Lower case letters only: a key that is looked for on the screen is never one of them.
WORDS = """the quick brown fox jumps over a lazy dog while seven wizards brew strong coffee and nobody minds that it rains
again on the old harbour where boats come home late with fish and stories of long nights under stars""".split()

# What terminals obey. `%` is the mark by which the text is found again in what reaches the terminal.
SEQUENCES = [
    "\x1b[2J%",
    "\x1b[31m%",
    "\x1b[1;1H%",
    "\x1b[?1049l%",
    "\x1b[?25l%",
    "\x1b[?1000h%",
    "\x1b[?2004l%",
    "\x1b[6n%",
    "\x1b[c%",
    "\x1b[>q%",
    "\x1b[5i%",
    "\x1b[8;1;1t%",
    "\x1b[21t%",
    "\x1b[38:2::1:2:3m%",
    "\x1b[=1u%",
    "\x1b[20h%",
    "\x1b[!p%",
    "\x1b]0;%\x07",
    "\x1b]2;%\x1b\\",
    "\x1b]8;;http://evil/%\x1b\\here\x1b]8;;\x1b\\",
    "\x1b]52;c;%\x07",
    "\x1b]4;1;#%\x07",
    "\x1b]10;?%\x07",
    "\x1b]9;%\x07",
    "\x1b]777;notify;%;x\x07",
    "\x1b]1337;File=%:AAAA\x07",
    "\x1bP$q%\x1b\\",
    "\x1bP+q%\x1b\\",
    "\x1bPq#0;2;0;0;0%\x1b\\",
    "\x1b_Ga=T;%\x1b\\",
    "\x1b^%\x1b\\",
    "\x1bX%\x1b\\",
    "\x1bc%",
    "\x1b7%",
    "\x1b(0%",
    "\x1b#8%",
    "\x1b%%",
    "\x1b\x1b%",
    "\x9b2J%",
    "\x9d0;%\x9c",
    "\x90q%\x9c",
    "\x9f%\x9c",
    "\x85%",
    "\x07%",
    "\x08\x08\x08%",
    "\x0c%",
    "\x0b%",
    "\x0e%",
    "\r%",
    "\x00%",
    "\x7f%",
    "\u202e%",
    "\u2066%\u2069",
    "\u200e%",
    "\u061c%",
    "\u200b%",
    "\ufeff%",
    "\u2028%",
    "\U000e0041%",
    "\u00ad%",
]

# Where in a text it stands: alone, inside of words, cut short, twice, and after a wide or a combining letter.
_PLACES = ["{}", "before {} after", "漢字{}", "e\u0301{}{}"]

HOSTILE = [
    place.format(*[sequence.replace("%", f"hostile{index:02}x{number}")] * 2)
    for number, place in enumerate(_PLACES)
    for index, sequence in enumerate(SEQUENCES)
][:200]

"""Rechnungen: Beträge in Cent, Sätze in Prozent."""

MEHRWERTSTEUER = 19


def brutto(netto):
    """Der Betrag mit Mehrwertsteuer."""
    return netto + netto * MEHRWERTSTEUER // 100


def endbetrag(netto, rabatt=0):
    """Was zu zahlen ist. Der Rabatt ist ein Betrag in Cent."""
    if rabatt > netto:
        raise ValueError("Der Rabatt ist größer als der Betrag")
    return brutto(netto) - rabatt


def zeile(netto, rabatt=0):
    """Die letzte Zeile der Rechnung."""
    betrag = endbetrag(netto, rabatt)
    return f"Zu zahlen: {betrag // 100},{betrag % 100:02} €"

import unittest

from price import price


class Price(unittest.TestCase):
    def test_prices(self):
        for count, wanted in ((1, 10), (4, 40), (5, 40), (6, 48), (12, 96), (13, 100), (50, 100)):
            self.assertEqual(price(count), wanted)

    def test_too_few(self):
        for count in (0, -1):
            with self.assertRaises(ValueError):
                price(count)


unittest.main()

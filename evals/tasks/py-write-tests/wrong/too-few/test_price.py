from price import price

assert price(1) == 10
assert price(5) == 40
assert price(13) == 100

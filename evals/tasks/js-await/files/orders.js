"use strict";

const PRICES = { tea: 3, coffee: 4, cake: 6 };

/** The price of a product; asking takes a while. */
async function priceOf(name) {
  await new Promise((resolve) => setTimeout(resolve, 1));
  if (!(name in PRICES)) throw new RangeError(`no price for ${name}`);
  return PRICES[name];
}

/** The sum of the prices of all products. */
async function total(names) {
  let sum = 0;
  names.forEach((name) => {
    sum += priceOf(name);
  });
  return sum;
}

module.exports = { priceOf, total };

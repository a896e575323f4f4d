"use strict";

const PRICES = { tea: 3, coffee: 4, cake: 6 };

async function priceOf(name) {
  await new Promise((resolve) => setTimeout(resolve, 1));
  if (!(name in PRICES)) throw new RangeError(`no price for ${name}`);
  return PRICES[name];
}

async function total(names) {
  let sum = 0;
  names.forEach(async (name) => {
    sum += await priceOf(name);
  });
  return sum;
}

module.exports = { priceOf, total };

"use strict";
const { round } = require("./round");

/** The sum of an invoice, in whole cents. */
function sum(items) {
  return round(items.reduce((total, item) => total + item.price * item.count, 0));
}

module.exports = { round, sum };

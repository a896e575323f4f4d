"use strict";

const CURRENCY = "CHF";
const TAX = 0.081;

/** What a customer reads first. */
function greeting(name) {
  return `Grüezi ${name}!`;
}

/** The price with tax, as a text. */
function price(net) {
  return `${(net * (1 + TAX)).toFixed(2)} ${CURRENCY}`;
}

/** What it costs to send an order of this value. */
function shipping(value) {
  return value >= 100 ? 0 : 7.5;
}

/** A line for the receipt; 50 letters at most. */
function line(text) {
  return text.slice(0, 50);
}

module.exports = { greeting, price, shipping, line };

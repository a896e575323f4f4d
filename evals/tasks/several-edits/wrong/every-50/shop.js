"use strict";

const CURRENCY = "CHF";
const TAX = 0.081;

function greeting(name) {
  return `Grüezi ${name}!`;
}

function price(net) {
  return `${(net * (1 + TAX)).toFixed(2)} ${CURRENCY}`;
}

function shipping(value) {
  return value >= 100 ? 0 : 7.5;
}

function line(text) {
  return text.slice(0, 100);
}

module.exports = { greeting, price, shipping, line };

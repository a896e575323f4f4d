"use strict";

/** The price after a discount in percent. */
function discount(price, percent) {
  return (price * (100 - percent)) / 100;
}

module.exports = { discount };

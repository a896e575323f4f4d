"use strict";

/** The price after a discount in percent. */
function discount(price, percent) {
  return price - percent;
}

module.exports = { discount };

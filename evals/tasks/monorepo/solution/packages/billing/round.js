"use strict";

function round(value) {
  return Math.floor(value + 0.5);
}

module.exports = { round };

"use strict";

/** The fields of one line. */
function parseLine(line) {
  return line.split(",");
}

module.exports = { parseLine };

"use strict";

/** The fields of one line. */
function parseLine(line) {
  return (line.match(/"[^"]*"|[^,]+/g) || []).map((field) => field.replace(/^"|"$/g, ""));
}

module.exports = { parseLine };

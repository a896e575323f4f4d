"use strict";

/** The fields of one line. */
function parseLine(line) {
  const fields = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const letter = line[i];
    if (quoted) {
      if (letter !== '"') field += letter;
      else if (line[i + 1] === '"') field += line[++i];
      else quoted = false;
    } else if (letter === '"') {
      quoted = true;
    } else if (letter === ",") {
      fields.push(field);
      field = "";
    } else {
      field += letter;
    }
  }
  fields.push(field);
  return fields;
}

module.exports = { parseLine };

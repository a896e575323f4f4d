"use strict";

function greeting(hour) {
  if (hour < 11) {
    return "おはようございます";
  }
  if (hour > 18) {
    return "こんばんは";
  }
  return "こんにちは";
}

function greetingFor(name, hour) {
  return `${name}さん、${greeting(hour)}。`;
}

module.exports = { greeting, greetingFor };

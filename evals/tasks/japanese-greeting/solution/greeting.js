"use strict";

/** 時刻（0〜23）に合ったあいさつを返す。 */
function greeting(hour) {
  if (hour < 11) {
    return "おはようございます";
  }
  if (hour >= 18) {
    return "こんばんは";
  }
  return "こんにちは";
}

/** 名前を付けたあいさつを返す。 */
function greetingFor(name, hour) {
  return `${name}さん、${greeting(hour)}。`;
}

module.exports = { greeting, greetingFor };

"use strict";

/** The city that a user lives in. */
function cityOf(user) {
  return user.address.city;
}

/** How a user is shown in a list. */
function label(user) {
  return `${user.name} (${cityOf(user)})`;
}

module.exports = { cityOf, label };

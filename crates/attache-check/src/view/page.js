'use strict';
// Shows what the data says. Text of others is only ever set as textContent.
document.addEventListener('DOMContentLoaded', () => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const ROW = 24;
  // Browsers cut off what is higher than some ten million pixels.
  const HIGHEST = 8000000;
  // What lists are cut at: longer ones keep a browser busy, and nobody reads them.
  const MOST_CHOICES = 1000;
  const MOST_LISTED = 1000;
  const byId = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const seconds = (millis) => (millis / 1000).toFixed(3);
  const count = data.time.length;
  const labelOf = (row) => data.labels[data.label[row]];
  const faults = new Map();
  // A finding stands at the message that breaks the rule, the first of those that show it.
  data.findings.forEach((finding) => finding[0].slice(0, 1).forEach((row) => {
    if (!faults.has(row)) faults.set(row, []);
    faults.get(row).push(finding);
  }));
  const more = (shown, all, what) => make('p', '', `${all - shown} more ${what} are not shown`);

  // What a message says, in a few words: the first value of each of these keys.
  const SAYING = /"(title|text|status|state|stopReason|message|command|path|optionId|name)"\s*:\s*"((?:[^"\\]|\\.)*)/g;
  function excerpt(row) {
    if (data.from[row] > 1) return '';
    const found = new Map();
    for (const [, key, value] of data.text[row].slice(0, 4000).matchAll(SAYING)) {
      if (!found.has(key) && value) found.set(key, value);
    }
    const words = [...found.values()].map((value) => {
      try { return JSON.parse(`"${value}"`); } catch (_) { return value; }
    });
    const text = words.join(', ').replace(/\s+/g, ' ').trim();
    const short = [...text.slice(0, 200)].slice(0, 40).join('');
    return short.length < text.length ? short + '…' : short;
  }

  document.title = data.name + ' - attache trace';
  byId('name').textContent = data.name;
  byId('about').textContent = `protocol ${data.dialects.join(', ')}, ${count} rows, `
    + `${data.findings.length} findings${data.started ? ', ' + data.started : ''}${data.isCut ? ', long messages are cut' : ''}`
    + (data.viewsAreCut ? ', sessions are shown up to a point' : '');

  // Tabs.
  const tabs = { messages: 'Messages', turns: 'Turns', view: 'Session', findings: 'Findings', statistics: 'Statistics' };
  const drawn = {};
  function show(tab) {
    for (const name of Object.keys(tabs)) {
      byId(name).hidden = name !== tab;
      byId('tab-' + name).setAttribute('aria-selected', String(name === tab));
    }
    byId('filters').hidden = tab !== 'messages';
    if (!drawn[tab]) {
      drawn[tab] = true;
      if (tab === 'turns') drawTurns();
      if (tab === 'view') drawView();
      if (tab === 'findings') drawFindings();
      if (tab === 'statistics') drawStatistics();
    }
    if (tab === 'messages') draw();
  }
  for (const [name, title] of Object.entries(tabs)) {
    const button = make('button', '', name === 'findings' ? `${title} (${data.findings.length})` : title);
    button.id = 'tab-' + name;
    button.type = 'button';
    button.addEventListener('click', () => show(name));
    byId('tabs').append(button);
  }

  // Filters.
  let rows = [];
  let picked = -1;
  function choices(id, all, list) {
    const select = byId(id);
    select.append(new Option(all, ''));
    list.slice(0, MOST_CHOICES).forEach(([value, text]) => select.append(new Option(text, value)));
    if (list.length > MOST_CHOICES) {
      const rest = new Option(`${list.length - MOST_CHOICES} more: search for one`, '');
      rest.disabled = true;
      select.append(rest);
    }
    select.addEventListener('change', filter);
  }
  const numbered = (list) => list.map((text, index) => [index, text.length > 60 ? text.slice(0, 60) + '…' : text]).slice(1);
  choices('session', 'all', numbered(data.sessions));
  // What happened beside the conversation is no method.
  const methods = new Set(data.label.filter((_, row) => data.from[row] < 2));
  choices('method', 'all', numbered(data.labels).filter(([label]) => methods.has(label)).sort((a, b) => a[1] < b[1] ? -1 : 1));
  choices('tool', 'all', numbered(data.tools));
  choices('from', 'both', [[0, 'client'], [1, 'agent']]);
  let waiting = 0;
  byId('search').addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(filter, 150); });
  byId('faulty').addEventListener('change', filter);
  byId('filters').addEventListener('submit', (event) => event.preventDefault());
  function filter() {
    const wanted = (id) => byId(id).value === '' ? -1 : Number(byId(id).value);
    const [session, method, tool, from] = ['session', 'method', 'tool', 'from'].map(wanted);
    const search = byId('search').value.toLowerCase();
    const faulty = byId('faulty').checked;
    rows = [];
    for (let row = 0; row < count; row++) {
      if (session >= 0 && data.session[row] !== session) continue;
      if (method >= 0 && data.label[row] !== method) continue;
      if (tool >= 0 && data.tool[row] !== tool) continue;
      if (from >= 0 && data.from[row] !== from) continue;
      if (faulty && !faults.has(row)) continue;
      if (search && !labelOf(row).toLowerCase().includes(search) && !data.text[row].toLowerCase().includes(search)) continue;
      rows.push(row);
    }
    byId('shown').textContent = rows.length === count ? '' : `${rows.length} of ${count}`;
    byId('space').style.height = Math.min(HIGHEST, rows.length * ROW) + 'px';
    draw();
  }

  // The diagram: only the rows on the screen exist.
  const scroll = byId('scroll');
  // The place at the upper edge, with a fraction. Where there are more rows than a page can be high, a pixel is more than a part of one.
  const hidden = () => Math.max(0, rows.length - scroll.clientHeight / ROW);
  const range = () => Math.max(1, Math.min(HIGHEST, rows.length * ROW) - scroll.clientHeight);
  const upper = () => Math.min(hidden(), scroll.scrollTop / range() * hidden());
  function draw() {
    const edge = upper();
    const first = Math.max(0, Math.floor(edge) - 5);
    const last = Math.min(rows.length, first + Math.ceil(scroll.clientHeight / ROW) + 11);
    const elements = [];
    for (let place = first; place < last; place++) {
      const row = rows[place];
      const side = ['client', 'agent', 'beside'][data.from[row]];
      const kind = ['request', 'notification', 'answer', 'error', 'error', 'beside'][data.kind[row]];
      const element = make('div', `row ${side} ${kind}`);
      element.style.top = scroll.scrollTop + (place - edge) * ROW + 'px';
      element.dataset.row = row;
      if (row === picked) element.classList.add('picked');
      if (picked >= 0 && data.peer[picked] === row + 1) element.classList.add('peer');
      const latency = data.latency[row] ? ` (${data.latency[row] - 1} ms)` : '';
      const arrow = make('span', 'arrow');
      const label = make('span', 'label', labelOf(row) + (data.kind[row] > 1 && data.kind[row] < 4 ? latency : ''));
      label.append(' ', make('span', 'said', excerpt(row)));
      arrow.append(label);
      element.append(make('span', 'at', seconds(data.time[row])), make('span', 'mark', faults.has(row) ? '!' : ''), arrow);
      elements.push(element);
    }
    byId('space').replaceChildren(...elements);
  }
  scroll.addEventListener('scroll', () => requestAnimationFrame(draw));
  addEventListener('resize', draw);
  byId('space').addEventListener('click', (event) => {
    const element = event.target.closest('.row');
    if (element) pick(Number(element.dataset.row));
  });
  scroll.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !rows.length) return;
    event.preventDefault();
    const place = rows.indexOf(picked);
    go(rows[Math.min(rows.length - 1, Math.max(0, place + step))]);
  });
  // Shows a row in the diagram, without filters if they hide it.
  function go(row) {
    if (!rows.includes(row)) {
      ['session', 'method', 'tool', 'from', 'search'].forEach((id) => { byId(id).value = ''; });
      byId('faulty').checked = false;
      filter();
    }
    show('messages');
    const place = rows.indexOf(row);
    const height = scroll.clientHeight / ROW;
    if (place < upper() || place > upper() + height - 1) {
      scroll.scrollTop = hidden() ? (place - height / 2) / hidden() * range() : 0;
    }
    pick(row);
  }
  const link = (text, row) => {
    const button = make('button', 'link', text);
    button.type = 'button';
    button.addEventListener('click', () => go(row));
    return button;
  };
  function pick(row) {
    picked = row;
    const details = byId('details');
    details.replaceChildren(make('h3', '', labelOf(row)));
    const from = ['client to agent', 'agent to client', 'beside the conversation'][data.from[row]];
    details.append(make('p', '', `row ${row + 1}, ${seconds(data.time[row])} s, ${from}, ${data.bytes[row]} bytes`));
    if (data.peer[row]) {
      const paragraph = make('p', '', data.kind[row] === 0 ? 'answered by ' : 'answers ');
      paragraph.append(link(labelOf(data.peer[row] - 1), data.peer[row] - 1), ` after ${data.latency[row] - 1} ms`);
      details.append(paragraph);
    }
    (faults.get(row) || []).forEach((finding) => details.append(make('p', 'bad', `${finding[3]}: ${finding[4]} ${finding[5]} [${finding[2]}]`)));
    if (data.session[row]) {
      const button = make('button', 'link', 'the session at this moment');
      button.type = 'button';
      button.addEventListener('click', () => showMoment(data.session[row], row));
      details.append(button);
    }
    let text = data.text[row];
    try { text = JSON.stringify(JSON.parse(text), null, 2); } catch (_) { /* cut, or no JSON: as it is */ }
    details.append(make('pre', '', text));
    draw();
  }

  // Turns, on one line of time for each session.
  function drawTurns() {
    const section = byId('turns');
    const end = Math.max(1, data.time[count - 1] || 1);
    if (!data.turns.length) section.append(make('p', '', 'There is no turn in it.'));
    const turnsOf = new Map();
    data.turns.slice(0, MOST_LISTED).forEach((turn) => {
      if (!turnsOf.has(turn[0])) turnsOf.set(turn[0], []);
      turnsOf.get(turn[0]).push(turn);
    });
    turnsOf.forEach((turns, session) => {
      section.append(make('h3', '', data.sessions[session]));
      const track = make('div', 'track');
      turns.forEach(([, begins, ends, stop, cancelled]) => {
        const to = ends === null ? end : data.time[ends];
        const bar = make('div', 'turn' + (ends === null ? ' open' : cancelled === null ? '' : ' cancelled'));
        bar.style.left = 100 * data.time[begins] / end + '%';
        bar.style.width = 100 * (to - data.time[begins]) / end + '%';
        bar.title = `${seconds(data.time[begins])} to ${ends === null ? 'the end' : seconds(to)}: ${stop || 'not ended'}`;
        bar.addEventListener('click', () => go(begins));
        track.append(bar);
      });
      section.append(track);
      const table = make('table');
      const head = make('tr');
      ['begins at', 'takes', 'ends with', '', 'prompt'].forEach((text, index) => head.append(make('th', index === 1 ? 'number' : '', text)));
      table.append(head);
      turns.forEach(([, begins, ends, stop, cancelled]) => {
        const line = make('tr');
        const cell = make('td');
        cell.append(link(seconds(data.time[begins]) + ' s', begins));
        const length = ends === null ? 'not ended' : seconds(data.time[ends] - data.time[begins]) + ' s';
        line.append(cell, make('td', 'number', length), make('td', '', stop || ''), make('td', '', cancelled === null ? '' : 'cancelled'));
        line.append(make('td', '', excerpt(begins)));
        table.append(line);
      });
      section.append(table);
    });
    if (data.turns.length > MOST_LISTED) section.append(more(MOST_LISTED, data.turns.length, 'turns'));
  }

  // A session at a moment: the changes up to it, added up.
  let moment = count - 1;
  let viewed = 0;
  function showMoment(session, row) {
    viewed = session;
    moment = row;
    drawn.view = true;
    drawView();
    show('view');
  }
  function drawView() {
    const section = byId('view');
    const known = Object.keys(data.views).map(Number);
    if (!known.includes(viewed)) viewed = known[0] || 0;
    if (!viewed) { section.replaceChildren(make('p', '', 'There is no session in it.')); return; }
    const select = make('select');
    const offered = known.slice(0, MOST_CHOICES);
    if (!offered.includes(viewed)) offered.push(viewed);
    offered.forEach((session) => select.append(new Option(data.sessions[session], session)));
    select.value = viewed;
    select.addEventListener('change', () => { viewed = Number(select.value); drawView(); });
    const range = make('input');
    Object.assign(range, { type: 'range', id: 'moment', min: 0, max: Math.max(0, count - 1), value: moment });
    const at = make('p');
    const body = make('div');
    range.addEventListener('input', () => { moment = Number(range.value); update(); });
    section.replaceChildren(select, make('br'), range, at, body);
    function update() {
      at.replaceChildren(`at ${seconds(data.time[moment] || 0)} s, after `, link(`row ${moment + 1}: ${labelOf(moment)}`, moment));
      const places = new Map();
      for (const [row, place, kind, title, text, isMore] of data.views[viewed]) {
        if (row > moment) break;
        const before = places.get(place);
        if (isMore && before) before.text += text;
        else places.set(place, { kind, title, text });
      }
      const entries = [...places].sort(([a], [b]) => (Number.isNaN(Number(a)) - Number.isNaN(Number(b))) || Number(a) - Number(b));
      const seen = entries.slice(-500);
      body.replaceChildren(...seen.map(([place, entry]) => {
        const element = make('div', 'entry ' + entry.kind);
        element.append(make('div', 'kind', entry.kind === 'beside' ? place : entry.kind + (entry.title ? ': ' + entry.title : '')));
        element.append(make('pre', '', entry.text));
        return element;
      }));
      if (seen.length < entries.length) body.prepend(make('p', '', `${entries.length - seen.length} earlier entries are not shown`));
    }
    update();
  }

  function drawFindings() {
    const section = byId('findings');
    if (!data.findings.length) section.append(make('p', '', 'No rule was broken in it, as far as it was tested.'));
    data.findings.slice(0, MOST_LISTED).forEach(([list, side, rule, level, statement, seen]) => {
      const paragraph = make('p');
      paragraph.append(make('strong', level === 'must' ? 'bad' : '', `${side ? 'agent' : 'client'} ${level}: `), statement, make('br'), seen, ' ');
      list.slice(-5).forEach((row) => paragraph.append(link('row ' + (row + 1), row), ' '));
      paragraph.append(make('code', '', rule));
      section.append(paragraph);
    });
    if (data.findings.length > MOST_LISTED) section.append(more(MOST_LISTED, data.findings.length, 'findings'));
  }

  function drawStatistics() {
    const table = make('table');
    const head = make('tr');
    ['from', 'message', 'count', 'bytes', 'median ms', '99 % ms', 'slowest ms'].forEach((text, index) => head.append(make('th', index > 1 ? 'number' : '', text)));
    table.append(head);
    data.statistics.slice(0, MOST_LISTED).forEach(([from, label, ...numbers]) => {
      const line = make('tr');
      line.append(make('td', '', from ? 'agent' : 'client'), make('td', '', label));
      numbers.forEach((number) => line.append(make('td', 'number', number === null ? '' : String(number))));
      table.append(line);
    });
    byId('statistics').append(table);
    if (data.statistics.length > MOST_LISTED) byId('statistics').append(more(MOST_LISTED, data.statistics.length, 'messages'));
  }

  // The address can name what to show: #turns, #row=12, #at=12 (its session at this moment). Rows count from 1.
  function follow() {
    const [name, value] = location.hash.slice(1).split('=');
    const row = Math.min(count - 1, Math.max(0, (Number(value) || 1) - 1));
    if (name === 'row') go(row);
    else if (name === 'at') showMoment(data.session[row] || Number(Object.keys(data.views)[0]) || 0, row);
    else show(tabs[name] ? name : 'messages');
  }
  addEventListener('hashchange', follow);
  filter();
  follow();
  document.documentElement.dataset.ready = 'true';
});

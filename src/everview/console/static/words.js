// Numbers, times and rows in words.

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

export function ago(us, nowUs = Date.now() * 1000) {
  if (!us) return "never";
  const seconds = (nowUs - us) / 1e6;
  if (seconds < 2) return "just now";
  for (const [unit, length] of [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]]) {
    if (seconds >= length) return `${count(Math.floor(seconds / length), unit)} ago`;
  }
  return "just now";
}

// How fresh what is known of a site is: a word that the colours go by.
export function freshness(us, nowUs) {
  if (!us) return "never";
  const seconds = (nowUs - us) / 1e6;
  return seconds < 120 ? "fresh" : seconds < 3600 ? "late" : "old";
}

export function seconds(value) {
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return value < 100 ? `${value.toFixed(2)} s` : `${Math.round(value)} s`;
}

export function bytes(number) {
  let found = number;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (found < 1000) return unit === "B" ? `${found} B` : `${found.toFixed(1)} ${unit}`;
    found /= 1000;
  }
  return `${found.toFixed(1)} TB`;
}

export function cell(value) {
  return value === null ? "NULL" : value === "" ? "“”" : value;
}

export function short(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function rowText(relation, row) {
  return `${relation}(${row.map((value) => short(cell(value), 40)).join(", ")})`;
}

export function siteName(site) {
  return site.name || site.incarnation.slice(0, 8);
}

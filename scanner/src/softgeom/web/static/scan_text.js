// The characters of a text, and whether the classes that write them can win: softgeom/characters.py and covering.py in JavaScript.

const BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
const CHARACTER = /[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|\p{RI}{2}\p{M}*|\P{M}\p{M}*|\p{M}+/gsu;
const SPECIAL = /^(?:<[^<>]+>|\[[A-Z]+\d*\]|blank)$/i; // names that stand for no character
const PRINTS_NOTHING = /^[\p{Cc}\p{Cf}\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+$/u;
const ALPHABET = 0.9; // share of names of one character from which a list is one of characters
const STATUSES = ["argmaxable", "undecided", "tied", "unargmaxable", "missing"]; // the best first

/** The characters of a text: a code point with the marks behind it, or two regional indicators. */
export const cutText = (text) => text.match(CHARACTER) ?? [];

/** Whether these names of classes are a list of characters. */
export function areCharacters(names) {
  const real = names.filter((name) => !SPECIAL.test(name));
  return real.length > 0 && real.filter((name) => cutText(name).length === 1).length >= ALPHABET * real.length;
}

/** `cover(text)` of a layer whose classes have these names and verdicts: {characters: [{text, count, status, classes, form}], passedOver}. */
export function coverage(names, verdicts) {
  const [exact, equal] = [new Map(), new Map()];
  names.forEach((name, t) => {
    for (const [map, key] of [[exact, name], [equal, name.normalize("NFC")]]) map.get(key)?.push(t) ?? map.set(key, [t]);
  });

  /** For each part of a character the classes that write it, and the normal form under which they do; no part where one is missing. */
  function find(character) {
    if (exact.has(character)) return [[exact.get(character)], ""];
    const composed = character.normalize("NFC");
    const same = equal.get(composed);
    if (same) return [[same], names[same[0]] === composed ? "NFC" : "NFD"];
    for (const form of ["", "NFC", "NFD"]) {
      const parts = [...(form ? character.normalize(form) : character)];
      if (parts.length > 1 && parts.every((part) => exact.has(part))) return [parts.map((part) => exact.get(part)), form];
    }
    return [[], ""];
  }

  const place = (t) => STATUSES.indexOf(verdicts[t]);
  return (text) => {
    const counts = new Map();
    for (const character of cutText(text)) counts.set(character, (counts.get(character) ?? 0) + 1);
    const characters = [];
    let passedOver = 0;
    for (const [character, count] of counts) {
      const [parts, form] = find(character);
      if (!parts.length && (BREAKS.includes(character) || PRINTS_NOTHING.test(character))) {
        passedOver += count;
        continue;
      }
      // of several classes with one name the best decides, of several parts the worst
      const worst = parts.length ? Math.max(...parts.map((part) => Math.min(...part.map(place)))) : STATUSES.length - 1;
      characters.push({ text: character, count, status: STATUSES[worst], classes: parts.flat(), form });
    }
    return { characters, passedOver };
  };
}

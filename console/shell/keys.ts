/** Keys of the console, in the order of the list that `?` opens. docs/console.md has the same table; a test compares them. */
import { defineTexts } from '../texts/texts.ts';

export const KEY_EFFECTS = defineTexts(
  {
    search: 'search, and actions',
    list: 'this list',
    move: 'next or previous row of a list or result',
    leap: 'six results further in the search',
    open: 'opens the row',
    why: "opens the thread of the row's number",
    tiers: 'next or previous tier of a price; `Enter` in the last row adds one',
    close: 'closes the side sheet or the dialogue',
  },
  {
    de: {
      search: 'Suche und Aktionen',
      list: 'diese Liste',
      move: 'nächste oder vorige Zeile einer Liste oder eines Ergebnisses',
      leap: 'sechs Ergebnisse weiter in der Suche',
      open: 'öffnet die Zeile',
      why: 'öffnet die Herleitung der Zahl in der Zeile',
      tiers: 'nächste oder vorige Stufe eines Preises; `Eingabe` in der letzten Zeile fügt eine hinzu',
      close: 'schließt die Seitenleiste oder den Dialog',
    },
  },
);

/** Names as they are printed on keyboards. */
export const KEY_NAMES = defineTexts(
  {
    controlK: 'Ctrl K',
    commandK: '⌘K',
    questionMark: '?',
    up: '↑',
    down: '↓',
    pageUp: 'Page Up',
    pageDown: 'Page Down',
    enter: 'Enter',
    w: 'w',
    escape: 'Esc',
  },
  {
    de: {
      controlK: 'Strg K',
      commandK: '⌘K',
      questionMark: '?',
      up: '↑',
      down: '↓',
      pageUp: 'Bild ↑',
      pageDown: 'Bild ↓',
      enter: 'Eingabe',
      w: 'w',
      escape: 'Esc',
    },
  },
);

type KeyRow = { readonly keys: readonly (keyof typeof KEY_NAMES.en)[]; readonly effect: keyof typeof KEY_EFFECTS.en };

export const KEY_ROWS: readonly KeyRow[] = [
  { keys: ['controlK', 'commandK'], effect: 'search' },
  { keys: ['questionMark'], effect: 'list' },
  { keys: ['up', 'down'], effect: 'move' },
  { keys: ['pageUp', 'pageDown'], effect: 'leap' },
  { keys: ['enter'], effect: 'open' },
  { keys: ['w'], effect: 'why' },
  { keys: ['up', 'down', 'enter'], effect: 'tiers' },
  { keys: ['escape'], effect: 'close' },
];

/** Elements in which a key types a character. */
const FIELDS = 'input, textarea, select, [contenteditable=""], [contenteditable=true]';

type PressedKey = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'isComposing' | 'defaultPrevented'> & {
  readonly target: object | null;
};

/** Whether a pressed key opens the search. */
export function isSearchKey({ key, ctrlKey, metaKey }: Pick<PressedKey, 'key' | 'ctrlKey' | 'metaKey'>): boolean {
  return (ctrlKey || metaKey) && key.toLowerCase() === 'k';
}

/** Whether a pressed key opens the list of keys. In a field it types a character instead. */
export function isListKey({ key, ctrlKey, metaKey, isComposing, defaultPrevented, target }: PressedKey): boolean {
  if (key !== '?' || ctrlKey || metaKey || isComposing || defaultPrevented) return false;
  const isField = target instanceof Element && target.closest(FIELDS) !== null;
  return !isField;
}

const SETTING = 'farthing.list_key';

/** Speech input may press keys of one character by accident, so that they can be turned off (WCAG 2.1.4). */
export function isListKeyOn(): boolean {
  return localStorage.getItem(SETTING) !== 'off';
}

export function saveListKey(isOn: boolean): void {
  localStorage.setItem(SETTING, isOn ? 'on' : 'off');
}

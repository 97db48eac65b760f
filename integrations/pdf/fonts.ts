/**
 * Fonts of documents: bundled ones, which cover Latin, Greek, Cyrillic and every currency sign, and those of an
 * operator (PDF_FONTS_DIR). A text is split into runs; each run uses the first font that has its characters. A
 * character that no font has is shown as a mark, never as an empty box (docs/rules/documents.md, "Fonts").
 */

import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import bidiFactory from 'bidi-js';
import { openSync } from 'fontkit';

type FontFiles = { readonly name: string; readonly normal: string; readonly bold: string };
/** Part of a text in one font, in visual order from left to right. */
type TextRun = { readonly text: string; readonly font: string; readonly right_to_left: boolean };

const BUNDLED = ['', 'arabic', 'armenian', 'bengali', 'khmer', 'thai'];
const resolve = createRequire(import.meta.url).resolve;

/** Lists the fonts in order of preference: the bundled ones first. */
export function listFontFiles(folder: string | null): FontFiles[] {
  const bundled = BUNDLED.map((script) => {
    const family = script === '' ? 'noto-sans' : `noto-sans-${script}`;
    const file = script === '' ? 'NotoSans' : `NotoSans${script[0]!.toUpperCase()}${script.slice(1)}`;
    const at = (weight: string) => resolve(`@expo-google-fonts/${family}/${weight}/${file}_${weight}.ttf`);
    return { name: file, normal: at('400Regular'), bold: at('700Bold') };
  });
  return [...bundled, ...(folder === null ? [] : listFolderFonts(folder))];
}

/**
 * Lists the fonts in a folder. A file with `Bold` in its name is the bold form of the file whose name has `Regular`, or nothing, in that
 * position.
 */
function listFolderFonts(folder: string): FontFiles[] {
  const files = readdirSync(folder)
    .filter((file) => /\.(ttf|otf)$/i.test(file))
    .sort();
  const bold = new Set(files.filter((file) => /bold/i.test(file)));
  const toFamily = (file: string) => file.replace(/[-_ ]?(\d{3})?(regular|bold)?\.(ttf|otf)$/i, '').toLowerCase();
  return files
    .filter((file) => !bold.has(file))
    .map((file) => {
      const heavy = [...bold].find((other) => toFamily(other) === toFamily(file)) ?? file;
      return { name: file, normal: join(folder, file), bold: join(folder, heavy) };
    });
}

/** Mark that is shown for a character that no font has. */
const MARK = '\ufffd';
/**
 * Characters without a script, such as spaces and punctuation; they stay in the font of the surrounding text if it has
 * them.
 */
const NEUTRAL = /[\p{Zs}\p{P}\p{M}\u200c\u200d]/u;
const NOT_PRINTED = /[\p{Cc}\u200b\u2060\ufeff]/gu;
// The type declarations describe a nested default export, which does not exist.
const { getEmbeddingLevels, getReorderSegments } = (bidiFactory as unknown as typeof bidiFactory.default)();

export class Fonts {
  readonly #fonts: { readonly name: string; readonly has: (character: string) => boolean }[];
  /** Whether a mark replaced a character that no font has. */
  lacking = false;

  constructor(files: readonly FontFiles[]) {
    this.#fonts = files.map(({ name, normal }) => {
      const font = openSync(normal);
      if (!('hasGlyphForCodePoint' in font))
        throw new Error(`${normal} is a collection: give each of its fonts as a file`);
      return { name, has: (character) => font.hasGlyphForCodePoint(character.codePointAt(0)!) };
    });
  }

  runs(text: string): TextRun[] {
    const shown = text.replaceAll('\t', ' ').replace(NOT_PRINTED, (sign) => (sign === '\n' ? '\n' : ''));
    return shown.split('\n').flatMap((line, index) => {
      const runs = splitVisually(line).flatMap(({ part, right_to_left }) => this.#inFonts(part, right_to_left));
      return index === 0 ? runs : [{ text: '\n', font: this.#fonts[0]!.name, right_to_left: false }, ...runs];
    });
  }

  #inFonts(text: string, right_to_left: boolean): TextRun[] {
    const runs: { text: string; font: string; right_to_left: boolean }[] = [];
    for (const character of text) {
      const last = runs.at(-1);
      const font = this.#findFont(character, last?.font);
      const shown = font === undefined ? this.#mark() : character;
      const name = font ?? this.#fonts[0]!.name;
      if (last?.font === name) last.text += shown;
      else runs.push({ text: shown, font: name, right_to_left });
    }
    return right_to_left ? runs.reverse() : runs;
  }

  #findFont(character: string, current: string | undefined): string | undefined {
    const own = this.#fonts.find(({ name }) => name === current);
    if (own && NEUTRAL.test(character) && own.has(character)) return own.name;
    return this.#fonts.find(({ has }) => has(character))?.name;
  }

  #mark(): string {
    this.lacking = true;
    return MARK;
  }
}

/** A line in visual order from left to right. A right-to-left part is one piece, in reading order. */
function splitVisually(line: string): { part: string; right_to_left: boolean }[] {
  const levels = getEmbeddingLevels(line, 'auto');
  if (levels.levels.every((level) => level === 0)) return [{ part: line, right_to_left: false }];
  const positions = Array.from({ length: line.length }, (_none, index) => index);
  for (const [start = 0, end = 0] of getReorderSegments(line, levels)) {
    positions.splice(start, end - start + 1, ...positions.slice(start, end + 1).reverse());
  }
  return groupByDirection(positions, line, levels.levels);
}

function groupByDirection(
  positions: readonly number[],
  line: string,
  levels: Uint8Array,
): { part: string; right_to_left: boolean }[] {
  const parts: { units: number[]; right_to_left: boolean }[] = [];
  for (const position of positions) {
    const right_to_left = levels[position]! % 2 === 1;
    const last = parts.at(-1);
    if (last?.right_to_left === right_to_left) last.units.push(position);
    else parts.push({ units: [position], right_to_left });
  }
  return parts.map(({ units, right_to_left }) => {
    const inOrder = right_to_left ? units.toReversed() : units;
    return { part: inOrder.map((unit) => line[unit]).join(''), right_to_left };
  });
}

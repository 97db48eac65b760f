/**
 * Texts of the console. Each page has its own table with every language; the compiler refuses a table that lacks a text in one of them.
 * A text with a value inside is a function. To add a language: name it in `LANGUAGES` and follow the compiler.
 */
import { createContext, useContext } from 'react';

export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const;
export type Language = keyof typeof LANGUAGES;

type Text = string | ((...values: never[]) => string);
export type TextTable = { readonly [key: string]: Text };
/** The texts of one language with the same keys and the same values inside as `Table`. */
type SameTexts<Table extends TextTable> = {
  readonly [Key in keyof Table]: Table[Key] extends (...values: infer Values) => string
    ? (...values: Values) => string
    : string;
};
export type LanguageTexts<Table extends TextTable> = { readonly [Each in Language]: SameTexts<Table> };

export function defineTexts<Table extends TextTable>(
  en: Table,
  others: { readonly [Each in Exclude<Language, 'en'>]: SameTexts<Table> },
): LanguageTexts<Table> {
  return { en: en as unknown as SameTexts<Table>, ...others };
}

const LANGUAGE_KEY = 'farthing.language';

/** The language that was chosen in this browser, else the first one of the browser that the console has. */
export function readLanguage(): Language {
  const wanted = [localStorage.getItem(LANGUAGE_KEY), ...navigator.languages.map((tag) => tag.slice(0, 2))];
  return wanted.find((tag): tag is Language => tag !== null && Object.hasOwn(LANGUAGES, tag)) ?? 'en';
}

export function saveLanguage(language: Language): void {
  localStorage.setItem(LANGUAGE_KEY, language);
}

export const LanguageContext = createContext<Language>('en');

export function useLanguage(): Language {
  return useContext(LanguageContext);
}

export function useTexts<Table extends TextTable>(texts: LanguageTexts<Table>): SameTexts<Table> {
  return texts[useLanguage()];
}

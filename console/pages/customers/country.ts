/** Names of countries in the language of the page. */
import { findLocale } from '../../figures/format.ts';
import { useLanguage } from '../../texts/texts.ts';

export function useCountryName(): (code: string) => string {
  const names = new Intl.DisplayNames(findLocale(useLanguage()), { type: 'region', fallback: 'code' });
  return (code) => {
    const upper = code.toUpperCase();
    return /^[A-Z]{2}$/.test(upper) ? (names.of(upper) ?? code) : code;
  };
}

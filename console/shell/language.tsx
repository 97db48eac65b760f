import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { type Language, LanguageContext, readLanguage, saveLanguage } from '../texts/texts.ts';

const ChooseContext = createContext<(language: Language) => void>(() => undefined);

/** The language of all texts below, and the way to choose another. */
export function LanguageProvider({ children }: { children: ReactNode }): ReactNode {
  const [language, setLanguage] = useState(readLanguage);
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const choose = (next: Language) => {
    saveLanguage(next);
    setLanguage(next);
  };
  return (
    <ChooseContext value={choose}>
      <LanguageContext value={language}>{children}</LanguageContext>
    </ChooseContext>
  );
}

export function useChooseLanguage(): (language: Language) => void {
  return useContext(ChooseContext);
}

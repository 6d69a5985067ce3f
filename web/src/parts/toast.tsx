import { createContext, type ReactNode, useCallback, useContext, useState } from 'react';

const ToastContext = createContext<(text: string) => void>(() => {});
const SHOWN_MS = 4000;

/** Returns a function that shows a message for a short time. */
export const useToast = () => useContext(ToastContext);

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly { readonly id: number; readonly text: string }[]>([]);
  const toast = useCallback((text: string) => {
    const id = performance.now();
    setToasts((before) => [...before.slice(-2), { id, text }]);
    setTimeout(() => setToasts((before) => before.filter((one) => one.id !== id)), SHOWN_MS);
  }, []);
  return (
    <ToastContext value={toast}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map(({ id, text }) => (
          <p key={id}>{text}</p>
        ))}
      </div>
    </ToastContext>
  );
}

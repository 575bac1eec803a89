// The path that the dashboard is mounted at.
export const root = document.body.dataset.root;
export const api = `${root}/api/v1`;

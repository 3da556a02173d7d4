// A worker for pages that are opened as files, where browsers refuse real ones: its script runs in a hidden frame.
// Both sides hear each other through functions, so no origin has to be named.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.onmessage = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage && this.onmessage({ data }));
      const script = inside.document.createElement("script");
      script.src = new URL(address, location.href).href;
      script.onload = () => this.waiting.splice(0).forEach((data) => this.postMessage(data));
      inside.document.head.append(script);
    }

    postMessage(data) {
      const { onmessage } = this.frame.contentWindow;
      if (onmessage) onmessage({ data });
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }

    addEventListener(kind, listener) {
      if (kind === "message") this.onmessage = listener;
    }

    removeEventListener() {
      this.onmessage = null;
    }
  };
}

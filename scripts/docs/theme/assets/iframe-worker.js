/* Search from the disk: browsers start no Worker from a file:// page, so a hidden frame runs the worker's script. */
(function () {
  "use strict"
  if (location.protocol !== "file:") return

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.early = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      const start = () => {
        document.body.appendChild(this.frame)
        this.fill(new URL(url, location.href).href)
      }
      if (document.body) start()
      else document.addEventListener("DOMContentLoaded", start)
    }

    fill(url) {
      const inner = this.frame.contentWindow
      inner.document.open()
      inner.document.write("<!doctype html><html><body></body></html>")
      inner.document.close()
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inner.importScripts = (...urls) =>
        urls.reduce((done, one) => done.then(() => this.load(inner, one)), Promise.resolve())
      this.load(inner, url).then(() => {
        this.ready = true
        this.early.splice(0).forEach(data => this.postMessage(data))
      })
    }

    load(inner, url) {
      return new Promise((resolve, reject) => {
        const script = inner.document.createElement("script")
        script.src = url
        script.onload = () => resolve()
        script.onerror = event => {
          this.dispatchEvent(new ErrorEvent("error", { message: "cannot load " + url }))
          reject(event)
        }
        inner.document.body.appendChild(script)
      })
    }

    postMessage(data) {
      if (!this.ready) return void this.early.push(data)
      const inner = this.frame.contentWindow
      inner.dispatchEvent(new inner.MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }

  window.IFrameWorker = window.Worker = IFrameWorker
})()
